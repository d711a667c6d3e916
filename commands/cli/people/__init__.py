"""The commands with which people decide: mute, unmute, mutes."""
