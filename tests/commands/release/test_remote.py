"""The remote of releases, with real bare repositories: read, fetched from, and pushed to while others push as well."""

from pathlib import Path

import pytest

from commands.effects.git import Git, GitFailed
from commands.effects.release.remote import (
    BranchExists,
    BranchInvalid,
    BranchMissing,
    NotFastForward,
    PushRefused,
    Remote,
    RemoteUnknown,
    RemoteUnreachable,
    TipRaced,
)
from projections.release.version import next_prerelease
from tests.commands.conftest import Repository
from tests.commands.release.hubs import Hub, Meanwhile

pytestmark = pytest.mark.real

BRANCH = "release/1.2.0"
HOSTILE = ["", "a b", "../main", "main:refs/heads/other", "refs/../x", "x.lock", "a\0b", "*", "@{-1}", "release/*"]
ODD = ["-f", "--all", "+main", "refs/heads/main", "HEAD"]


@pytest.fixture
def remote(hub: Hub) -> Remote:
    """The remote as our clone knows it."""
    return Remote(Git(hub.ours.path), "origin")


def head(hub: Hub, name: str = "HEAD") -> str:
    """A commit of our clone."""
    return hub.ours.git("rev-parse", name)


def own_refs(hub: Hub) -> str:
    """Everything that our clone has names for, but for what the ledger keeps."""
    refs = hub.ours.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return "\n".join(line for line in refs if not line.startswith("refs/ledger/"))


def through_ssh(hub: Hub, monkeypatch: pytest.MonkeyPatch, directory: Path, script: str) -> None:
    """Let our clone reach the hub through a program for ssh, in which `$last` is what ssh would run there."""
    ssh = directory / "ssh"
    ssh.write_text(f"#!/bin/sh\nfor last; do :; done\n{script}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")
    hub.ours.git("remote", "set-url", "origin", f"ssh://somebody@example.invalid{hub.path}")


class TestReading:
    def test_the_tip_is_what_the_remote_has_now_whatever_our_clone_remembers(self, hub, remote):
        assert remote.tip("main") == head(hub)

        pushed = hub.others_push("main")

        assert remote.tip("main") == pushed
        assert head(hub, "origin/main") != pushed

    def test_a_branch_that_is_not_there_has_no_tip_and_cannot_be_fetched(self, hub, remote):
        hub.others_push("other/release/1.2.0")
        hub.ours.git("push", "--quiet", "origin", "main:refs/tags/release/1.2.0")

        assert remote.tip(BRANCH) is None
        with pytest.raises(BranchMissing, match=r"origin has no branch release/1\.2\.0"):
            remote.fetch(BRANCH)

    def test_what_is_fetched_is_here_and_kept_without_any_change_of_the_users_own_names(self, hub, remote):
        hub.ours.git("fetch", "--quiet", "origin")
        hub.ours.git("tag", "mine")
        for name in ("fetch.prune", "fetch.pruneTags"):
            hub.ours.git("config", name, "true")
        pushed = hub.others_push("main")
        hub.ours.git("push", "--quiet", "origin", "main:refs/tags/v9.9.9")
        before = own_refs(hub)

        assert remote.fetch("main") == pushed

        assert own_refs(hub) == before
        assert head(hub, "refs/ledger/remote/main") == pushed
        assert (
            not (hub.ours.path / ".git" / "FETCH_HEAD").exists()
            or pushed not in (hub.ours.path / ".git" / "FETCH_HEAD").read_text()
        )
        assert remote.is_ancestor(head(hub), pushed)
        assert not remote.is_ancestor(pushed, head(hub))

    def test_a_branch_that_was_overwritten_is_fetched_as_it_is_now(self, hub, remote):
        first = hub.others_push(BRANCH)
        assert remote.fetch(BRANCH) == first
        second = hub.others_push(BRANCH, force=True)

        assert remote.fetch(BRANCH) == second
        assert not remote.is_ancestor(first, second)

    @pytest.mark.parametrize("change", ["moved", "deleted"])
    def test_a_branch_that_changes_while_it_is_read_is_not_used(self, hub, change):
        hub.others_push(BRANCH)
        deletion = ("push", "--quiet", "origin", f":refs/heads/{BRANCH}")
        changes = {
            "moved": lambda: hub.others_push(BRANCH, start=f"origin/{BRANCH}"),
            "deleted": lambda: hub.theirs.git(*deletion),
        }
        git = Meanwhile(hub.ours.path, "fetch", changes[change])

        with pytest.raises(TipRaced, match="has moved from"):
            Remote(git, "origin").fetch(BRANCH)
        assert git.happened

    def test_two_that_fetch_the_same_at_once_both_get_it(self, hub, remote, monkeypatch, tmp_path):
        """The other one is through while our git, which has looked already, receives the commits."""
        remote.fetch("main")
        pushed = hub.others_push("main")
        ours = f"git -C {hub.ours.path}"
        second_call = f"""
            until {ours} cat-file -e {pushed}; do sleep 0.05; done
            {ours} update-ref refs/ledger/remote/main {pushed}
        """
        count = f"echo >> {tmp_path}/calls; [ $(wc -l < {tmp_path}/calls) = 2 ] || exit 0"
        through_ssh(hub, monkeypatch, tmp_path, f'sh -c "$last"\n{count}\n{second_call}')

        assert Remote(Git(hub.ours.path), "origin").fetch("main") == pushed
        assert len((tmp_path / "calls").read_text().splitlines()) == 3

    def test_a_fetch_that_fails_here_is_no_answer_about_the_branch(self, hub, remote):
        hub.ours.git("update-ref", "refs/ledger/remote/release", "HEAD")
        hub.others_push(BRANCH)

        with pytest.raises(GitFailed, match="cannot be fetched from origin"):
            remote.fetch(BRANCH)

    @pytest.mark.parametrize("branch", HOSTILE)
    def test_what_can_be_no_branch_is_refused_before_the_remote_is_asked(self, remote, branch):
        with pytest.raises(BranchInvalid):
            remote.tip(branch)

    @pytest.mark.parametrize("branch", ODD)
    def test_a_branch_with_an_odd_name_is_only_ever_that_branch(self, remote, branch):
        assert remote.tip(branch) is None
        with pytest.raises(BranchMissing):
            remote.fetch(branch)

    def test_taken_prereleases_are_found_among_branches_and_tags(self, hub, remote):
        for name in (
            "refs/heads/release/1.2.0-rc.3", "refs/tags/v1.2.0-rc.10", "refs/heads/release/1.2.0-beta.40",
            "refs/heads/release/1.2.0", "refs/heads/release/1.2.00-rc.50", "refs/heads/feature/refs/tags/v1.2.0-rc.60",
            "refs/tags/v11.2.0-rc.70",
        ):  # fmt: skip
            hub.ours.git("push", "--quiet", "origin", f"main:{name}")
        hub.ours.git("tag", "--annotate", "--message", "a release", "v1.2.0-rc.11")
        hub.ours.git("push", "--quiet", "origin", "v1.2.0-rc.11")

        taken = remote.taken("1.2.0", "rc")

        assert taken == ("refs/heads/release/1.2.0-rc.3", "refs/tags/v1.2.0-rc.10", "refs/tags/v1.2.0-rc.11")
        assert next_prerelease("1.2.0", "rc", taken) == "1.2.0-rc.12"
        assert remote.taken("1.3.0", "rc") == ()


class TestCreate:
    def test_the_branch_is_made_and_making_it_again_finds_it(self, hub, remote):
        assert remote.create(BRANCH, head(hub)) == "created"
        assert remote.create(BRANCH, head(hub)) == "existing"
        assert hub.refs()[f"refs/heads/{BRANCH}"] == head(hub)
        assert set(hub.refs()) == {"refs/heads/main", f"refs/heads/{BRANCH}"}

    @pytest.mark.parametrize("name", ["HEAD", "HEAD^"])
    def test_a_branch_at_another_commit_is_left_as_it_is(self, hub, remote, name):
        theirs = hub.others_push(BRANCH, start="origin/main^")

        with pytest.raises(BranchExists, match=theirs[:12]):
            remote.create(BRANCH, head(hub, name))
        assert hub.refs()[f"refs/heads/{BRANCH}"] == theirs

    def test_who_comes_second_in_a_race_overwrites_nothing(self, hub):
        made = []
        git = Meanwhile(hub.ours.path, "push", lambda: made.append(hub.others_push(BRANCH)))

        with pytest.raises(BranchExists):
            Remote(git, "origin").create(BRANCH, head(hub))
        assert hub.refs()[f"refs/heads/{BRANCH}"] == made[0]

    def test_a_race_within_the_push_itself_is_decided_by_the_remote(self, hub, remote):
        """The other branch comes after ours was checked by git, right before the remote writes it."""
        hub.hook("pre-receive", f"unset GIT_QUARANTINE_PATH; git update-ref refs/heads/{BRANCH} {head(hub, 'HEAD^')}")

        with pytest.raises(BranchExists):
            remote.create(BRANCH, head(hub))
        assert hub.refs()[f"refs/heads/{BRANCH}"] == head(hub, "HEAD^")

    def test_an_answer_that_is_lost_does_not_lose_the_branch(self, hub, remote):
        """The connection ends after the remote has written and before it says so."""
        hub.hook("post-receive", "kill -9 $PPID")

        assert remote.create(BRANCH, head(hub)) == "existing"
        assert hub.refs()[f"refs/heads/{BRANCH}"] == head(hub)

    def test_a_remote_that_says_no_is_quoted(self, hub, remote):
        hub.hook("pre-receive", "echo 'only on Mondays, see https://me:secret@example.org/rules'; exit 1")

        with pytest.raises(PushRefused, match="only on Mondays") as refused:
            remote.create(BRANCH, head(hub))
        assert "hook declined" in refused.value.message
        assert "secret" not in refused.value.message
        assert f"refs/heads/{BRANCH}" not in hub.refs()

    @pytest.mark.parametrize(
        "branch", ["main", "release/1.2", "release/1.2.0:main", "release/../main", "v1.2.0", *HOSTILE, *ODD]
    )
    def test_nothing_but_a_release_branch_is_ever_pushed_to(self, hub, remote, branch):
        before = hub.refs()
        with pytest.raises(BranchInvalid):
            remote.create(branch, head(hub))
        with pytest.raises(BranchInvalid):
            remote.append(branch, head(hub, "HEAD^"), head(hub))
        assert hub.refs() == before

    def test_settings_of_the_user_push_nothing_else(self, hub, remote):
        for name, value in {
            "push.followTags": "true", "push.default": "matching", "remote.origin.push": "refs/heads/*:refs/heads/x-*",
            "remote.origin.tagOpt": "--tags",
        }.items():  # fmt: skip
            hub.ours.git("config", name, value)
        hub.ours.git("tag", "--annotate", "--message", "mine", "private")

        assert remote.create(BRANCH, head(hub)) == "created"
        assert set(hub.refs()) == {"refs/heads/main", f"refs/heads/{BRANCH}"}

    def test_submodules_are_left_to_those_who_push_them(self, hub, remote, tmp_path):
        ours, library = hub.ours, Repository(tmp_path / "library")
        library.commit({"a.py": ""})
        ours.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "library")
        for argument in ("user.name=me", "user.email=me@example.org"):
            ours.git("config", *argument.split("="), directory=ours.path / "library")
        ours.git("commit", "--quiet", "--allow-empty", "--message", "mine", directory=ours.path / "library")
        ours.git("config", "push.recurseSubmodules", "on-demand")
        commit = ours.commit()
        before = library.git("for-each-ref")

        assert remote.create(BRANCH, commit) == "created"
        assert library.git("for-each-ref") == before


class TestAppend:
    @pytest.fixture
    def tip(self, hub: Hub, remote: Remote) -> str:
        """The release branch as it was cut."""
        remote.create(BRANCH, head(hub))
        return head(hub)

    def test_the_branch_goes_on_and_going_on_again_finds_it(self, hub, remote, tip):
        hub.ours.commit({"fix.py": ""})
        new = hub.ours.commit({"fix.py": "2"})

        assert remote.append(BRANCH, tip, new) == "appended"
        assert remote.append(BRANCH, tip, new) == "existing"
        assert hub.refs()[f"refs/heads/{BRANCH}"] == new
        assert hub.refs()["refs/heads/main"] == tip

    def test_a_commit_beside_the_tip_is_refused_although_the_lease_would_hold(self, hub, remote, tip):
        hub.ours.git("checkout", "--quiet", "--detach", "HEAD^")
        beside = hub.ours.commit({"other.py": ""})

        with pytest.raises(NotFastForward):
            remote.append(BRANCH, tip, beside)
        with pytest.raises(NotFastForward):
            remote.append(BRANCH, tip, head(hub, "HEAD^"))
        assert hub.refs()[f"refs/heads/{BRANCH}"] == tip

    @pytest.mark.parametrize("when", ["before", "meanwhile"])
    def test_a_tip_that_has_moved_is_kept(self, hub, tip, when):
        theirs = []

        def others() -> None:
            theirs.append(hub.others_push(BRANCH, start=f"origin/{BRANCH}"))

        new = hub.ours.commit({"fix.py": ""})
        git = Meanwhile(hub.ours.path, "push", others)
        if when == "before":
            others()
            git = Git(hub.ours.path)

        with pytest.raises(TipRaced) as raced:
            Remote(git, "origin").append(BRANCH, tip, new)
        assert f"is at {theirs[0][:12]}, not at {tip[:12]}" in raced.value.message
        assert hub.refs()[f"refs/heads/{BRANCH}"] == theirs[0]

    def test_a_branch_that_was_taken_back_is_not_made_anew(self, hub, remote, tip):
        new = hub.ours.commit({"fix.py": ""})
        hub.theirs.git("push", "--quiet", "origin", f":refs/heads/{BRANCH}")

        with pytest.raises(BranchMissing):
            remote.append(BRANCH, tip, new)
        assert f"refs/heads/{BRANCH}" not in hub.refs()

    def test_a_remote_that_says_no_leaves_the_tip(self, hub, remote, tip):
        hub.hook("update", "exit 1")
        new = hub.ours.commit({"fix.py": ""})

        with pytest.raises(PushRefused, match="hook declined"):
            remote.append(BRANCH, tip, new)
        assert hub.refs()[f"refs/heads/{BRANCH}"] == tip


class TestReaching:
    @pytest.mark.parametrize(
        "name", ["nowhere", "", "-u", "--upload-pack=touch x", "../hub.git", "ext::sh -c true", "a\0b"]
    )
    def test_a_remote_without_a_name_in_this_repository_is_refused(self, hub, name):
        with pytest.raises(RemoteUnknown):
            Remote(Git(hub.ours.path), name)

    def test_a_remote_that_is_gone_is_told_apart_from_a_branch_that_is_not_there(self, hub, remote):
        hub.path.rename(hub.path.with_name("moved.git"))

        for ask in (lambda: remote.tip(BRANCH), lambda: remote.fetch("main"), lambda: remote.taken("1.0.0", "rc")):
            with pytest.raises(RemoteUnreachable, match=r"origin \(file\) cannot be reached"):
                ask()
        with pytest.raises(RemoteUnreachable):
            remote.create(BRANCH, head(hub))

    def test_credentials_in_an_address_are_never_told(self, hub):
        # Nothing listens on this port, because it is kept for no service.
        hub.ours.git("remote", "set-url", "origin", "https://somebody:hunter2@127.0.0.1:1/x.git")

        with pytest.raises(RemoteUnreachable, match=r"origin \(https\)") as unreachable:
            Remote(Git(hub.ours.path), "origin").tip("main")
        told = f"{unreachable.value.message} {unreachable.value.hint}"
        assert "hunter2" not in told
        assert "somebody" not in told

    def test_a_remote_that_does_not_answer_is_given_up(self, hub, monkeypatch):
        monkeypatch.setattr("commands.effects.release.remote._LISTING_LIMIT_SECONDS", 0.2)
        hub.ours.git("remote", "set-url", "origin", "ssh://example.invalid/hub.git")
        monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 60 #")

        with pytest.raises(RemoteUnreachable, match="no answer within") as unreachable:
            Remote(Git(hub.ours.path), "origin").tip("main")
        assert unreachable.value.__cause__ is None

    def test_the_users_own_way_through_ssh_is_taken_and_nobody_is_asked(self, hub, monkeypatch, tmp_path):
        through_ssh(hub, monkeypatch, tmp_path, f'env > {tmp_path}/seen\nexec sh -c "$last"')

        remote = Remote(Git(hub.ours.path), "origin")

        assert remote.transport == "ssh"
        assert remote.tip("main") == head(hub)
        seen = (tmp_path / "seen").read_text().splitlines()
        assert {"SSH_ASKPASS_REQUIRE=force", "SSH_ASKPASS=false", "GIT_TERMINAL_PROMPT=0"} <= set(seen)

    @pytest.mark.parametrize(
        ("url", "transport"),
        [
            ("https://example.org/x.git", "https"),
            ("git@example.org:team/x.git", "ssh"),
            ("/srv/a:b.git", "file"),
            ("file:///srv/x.git", "file"),
        ],
    )
    def test_how_a_remote_is_reached_is_all_of_its_address_that_is_told(self, hub, url, transport):
        hub.ours.git("remote", "set-url", "origin", url)
        assert Remote(Git(hub.ours.path), "origin").transport == transport
