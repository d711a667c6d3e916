"""Reports of a run for other tools and for people: renderers of one shape, each for one format."""
