"""git as the ledger sees it, on real repositories."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.effects import clock
from commands.effects.git import (
    Git,
    GitFailed,
    NoBaseline,
    NotARepository,
    RefUnknown,
    Shallow,
    git_environment,
)
from commands.effects.versions import Version, parse_version

pytestmark = pytest.mark.real

ABSENT = "0123456789012345678901234567890123456789"


def shallow_clone(repository, target, depth=1):
    repository.git("clone", "--quiet", f"--depth={depth}", repository.path.as_uri(), str(target))
    return Git(target)


class TestDiscovery:
    def test_a_sub_directory_leads_to_the_top_of_the_checkout(self, repository):
        git = Git.discover(repository.path / "tests")

        assert git.toplevel == git.directory == repository.path
        assert git.common_directory == repository.path / ".git"

    def test_a_linked_worktree_has_its_own_top_and_shares_the_common_directory(self, repository, tmp_path):
        repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))

        git = Git.discover(tmp_path / "linked" / "tests")

        assert git.toplevel == tmp_path / "linked"
        assert git.common_directory == repository.path / ".git"

    @pytest.mark.parametrize("name", ["with space", "größe", "new\nline", "ends in newline\n", "-dash", "a'b\"c"])
    def test_an_odd_name_of_the_directory_is_read_exactly(self, make_repository, name):
        made = make_repository(name)
        commit = made.commit({"a": "1"})

        git = Git.discover(made.path)

        assert git.toplevel == made.path
        assert git.common_directory == made.path / ".git"
        assert git.resolve("HEAD") == commit

    def test_a_directory_outside_of_any_repository_is_refused_with_what_to_do(self, tmp_path):
        with pytest.raises(NotARepository, match=re.escape(str(tmp_path))) as refusal:
            Git.discover(tmp_path)

        assert (refusal.value.code, refusal.value.exit_code) == ("no-repository", 2)
        assert "git init" in refusal.value.hint

    def test_a_missing_directory_is_refused(self, tmp_path):
        with pytest.raises(NotARepository, match="there is no directory"):
            Git.discover(tmp_path / "nowhere")

    def test_a_bare_repository_is_refused_because_it_has_no_checkout(self, repository, tmp_path):
        repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare.git"))

        with pytest.raises(NotARepository, match="work tree"):
            Git.discover(tmp_path / "bare.git")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
    def test_a_repository_that_git_does_not_trust_is_refused_with_the_way_to_trust_it(self, repository):
        os.chown(repository.path, 12345, 12345)

        with pytest.raises(NotARepository, match="dubious ownership") as refusal:
            Git.discover(repository.path)

        assert "safe.directory" in refusal.value.hint

    def test_variables_of_a_hook_do_not_lead_to_another_repository(self, repository, make_repository, monkeypatch):
        other = make_repository("other")
        other.commit({"b": "2"})
        monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
        monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / "elsewhere"))

        git = Git.discover(repository.path)

        assert git.toplevel == repository.path
        assert "app.py" in git.blobs(git.resolve("HEAD"))
        assert git.dirty_paths().total == 0

    def test_a_missing_git_program_is_told_as_such(self, repository, monkeypatch):
        monkeypatch.setenv("PATH", "/nonexistent")

        with pytest.raises(GitFailed, match="git cannot be started"):
            Git(repository.path).resolve("HEAD")

    def test_a_git_that_hangs_is_ended_with_all_that_it_started(self, repository, tmp_path, monkeypatch, wait_until):
        slow = tmp_path / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {tmp_path}/pid\nwait\n")
        slow.chmod(0o755)
        monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")

        with pytest.raises(GitFailed, match=r"took more than 0\.5 s"):
            Git(repository.path, timeout_seconds=0.5).resolve("HEAD")

        started = int((tmp_path / "pid").read_text())
        wait_until(lambda: clock.process_start(started) is None)


class TestEnvironment:
    def test_locations_go_and_given_configuration_stays(self):
        parent = {
            "PATH": "/bin", "GIT_DIR": "/x", "GIT_COMMON_DIR": "/x", "GIT_CONFIG_PARAMETERS": "'a=b'",
            "GIT_PAGER": "less", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*", "GIT_CONFIG_GLOBAL": "/g", "LC_ALL": "de_DE",
        }  # fmt: skip

        child = git_environment(parent)

        assert {name for name in child if name.startswith("GIT_CONFIG")} == {
            "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_CONFIG_GLOBAL",
        }  # fmt: skip
        assert "GIT_DIR" not in child
        assert "GIT_COMMON_DIR" not in child
        assert child["LC_ALL"] == "C"
        assert child["GIT_OPTIONAL_LOCKS"] == "0"
        assert child["GIT_TERMINAL_PROMPT"] == "0"


class TestResolve:
    def test_names_of_every_kind_lead_to_the_full_commit(self, repository):
        git, head = Git(repository.path), repository.git("rev-parse", "HEAD")
        repository.git("tag", "--annotate", "--message", "first", "v1.0")
        repository.git("tag", "--annotate", "--message", "a tag of a tag", "nested", "v1.0")

        assert {git.resolve(ref) for ref in ("HEAD", "main", "v1.0", "nested", head[:9], head)} == {head}

    @pytest.mark.parametrize(
        "ref", ["", "no-such", "-x", "--all", "HEAD^^^^", "HEAD:app.py", "a b", "main..main", ABSENT, "a\0b", "\n"]
    )
    def test_what_names_no_commit_is_refused(self, repository, ref):
        with pytest.raises(RefUnknown) as refusal:
            Git(repository.path).resolve(ref)

        assert (refusal.value.code, refusal.value.exit_code) == ("ref-unknown", 2)
        assert repr(ref) in refusal.value.message
        assert refusal.value.hint

    def test_a_shallow_clone_says_that_it_is_one_and_how_to_deepen_it(self, repository, tmp_path):
        parent = repository.git("rev-parse", "HEAD^")

        with pytest.raises(Shallow, match="shallow clone") as refusal:
            shallow_clone(repository, tmp_path / "shallow").resolve(parent)

        assert (refusal.value.code, refusal.value.exit_code) == ("shallow", 2)
        assert "git fetch --unshallow" in refusal.value.hint

    def test_a_replaced_commit_is_seen_as_it_was_committed(self, repository):
        head, parent = repository.git("rev-parse", "HEAD", "HEAD^").splitlines()
        tree = Git(repository.path).tree_id(head)
        repository.git("replace", head, parent)

        assert Git(repository.path).tree_id(head) == tree
        assert Git(repository.path).tree_id(parent) != tree


class TestHistory:
    def test_parents_come_in_order_and_a_root_has_none(self, repository):
        git, first = Git(repository.path), repository.git("rev-parse", "HEAD^")
        main = repository.git("rev-parse", "HEAD")
        repository.git("switch", "--quiet", "--create", "side", first)
        side = repository.commit({"side": "1"})
        repository.git("switch", "--quiet", "main")
        repository.git("merge", "--quiet", "--no-edit", "side")

        assert git.parents(git.resolve("HEAD")) == (main, side)
        assert git.parents(first) == ()

    def test_the_root_is_that_of_the_first_parents(self, repository):
        git, root = Git(repository.path), repository.git("rev-parse", "HEAD^")
        repository.git("switch", "--quiet", "--orphan", "unrelated")
        repository.commit({"other": "1"})
        repository.git("switch", "--quiet", "main")
        repository.git("merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "unrelated")

        assert git.root_commit() == root

    def test_the_root_is_not_known_in_a_shallow_clone_or_without_commits(self, repository, make_repository, tmp_path):
        shallow = shallow_clone(repository, tmp_path / "shallow")

        assert shallow.is_shallow()
        assert shallow.root_commit() is None
        assert not Git(repository.path).is_shallow()
        assert Git(make_repository("empty").path).root_commit() is None

    def test_ancestry_is_answered_or_not_known_never_guessed(self, repository, tmp_path):
        git = Git(repository.path)
        head, parent = repository.git("rev-parse", "HEAD", "HEAD^").splitlines()
        shallow = shallow_clone(repository, tmp_path / "shallow")

        assert git.is_ancestor(parent, head)
        assert git.is_ancestor(head, head)
        assert not git.is_ancestor(head, parent)
        assert shallow.is_ancestor(head, head)
        with pytest.raises(GitFailed):
            git.is_ancestor(ABSENT, head)

        repository.git("switch", "--quiet", "--create", "side", parent)
        side = repository.commit({"side": "1"})
        repository.git("fetch", "--quiet", "--depth=1", str(repository.path), "side", directory=shallow.directory)
        with pytest.raises(Shallow):
            shallow.is_ancestor(side, head)

    def test_equal_trees_have_one_id_whatever_their_history(self, repository):
        git, before = Git(repository.path), repository.git("rev-parse", "HEAD")

        assert git.tree_id(repository.commit()) == git.tree_id(before)
        assert git.tree_id(f"{before}^") != git.tree_id(before)


class TestDirtyPaths:
    def test_changed_staged_deleted_and_untracked_files_count_and_ignored_ones_do_not(self, repository):
        repository.commit({".gitignore": "*.log\n", "gone": "1", "staged": "1"})
        git = Git(repository.path)
        assert git.dirty_paths() == ((), 0)

        repository.write("app.py", "VALUE = 3\n")
        repository.write("staged", "2")
        repository.git("add", "staged")
        (repository.path / "gone").unlink()
        repository.write("new\nname é", "")
        repository.write("noise.log", "")

        assert set(git.dirty_paths().paths) == {"app.py", "staged", "gone", "new\nname é"}

    def test_the_list_is_bounded_and_the_count_is_not(self, repository):
        for number in range(30):
            repository.write(f"new-{number:02}", "")

        paths, total = Git(repository.path).dirty_paths(limit=5)

        assert paths == tuple(f"new-{number:02}" for number in range(5))
        assert total == 30

    def test_looking_does_not_write_the_index(self, repository):
        index = repository.path / ".git" / "index"
        os.utime(repository.path / "app.py", (1, 1))
        before = (index.read_bytes(), index.stat().st_mtime_ns)

        assert Git(repository.path).dirty_paths().total == 0
        assert (index.read_bytes(), index.stat().st_mtime_ns) == before


class TestBlobs:
    def test_names_of_every_kind_are_listed_with_mode_and_content_id(self, repository):
        names = ["with space", "größe", "new\nline", "tab\there", 'quote"', "*", ":(top)x", "sub/dir/file"]
        repository.commit(dict.fromkeys(names, "same"))
        (repository.path / "link").symlink_to("app.py")
        (repository.path / "run.sh").write_text("#!/bin/sh\n")
        (repository.path / "run.sh").chmod(0o755)
        commit = repository.commit()

        blobs = Git(repository.path / "tests").blobs(commit)

        same = repository.git("rev-parse", "HEAD:sub/dir/file")
        assert {name: blobs[name] for name in names} == dict.fromkeys(names, ("100644", same))
        assert blobs["link"].mode == "120000"
        assert blobs["run.sh"].mode == "100755"
        assert set(blobs) == {*names, "link", "run.sh", "app.py", "tests/test_app.py"}

    @pytest.mark.skipif(os.sys.platform != "linux", reason="the file system refuses such names")
    def test_a_name_that_is_not_utf_8_is_kept(self, repository):
        name = os.fsdecode(b"caf\xe9")
        commit = repository.commit({name: "1"})

        assert name in Git(repository.path).blobs(commit, [name])

    def test_of_the_paths_asked_for_the_absent_ones_are_missing_from_the_answer(self, repository):
        git = Git(repository.path)

        found = git.blobs(git.resolve("HEAD"), ["app.py", "absent.py", "tests", "*.py", ""])

        assert set(found) == {"app.py"}

    def test_an_error_is_never_taken_for_absence(self, repository):
        git, head = Git(repository.path), repository.git("rev-parse", "HEAD")
        tree = git.tree_id(head)
        (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()

        for commit in (head, ABSENT, "no-such"):
            with pytest.raises(GitFailed) as failure:
                git.blobs(commit, ["absent.py"])
            assert failure.value.code == "git-failed"
            assert failure.value.hint

    def test_a_submodule_is_listed_as_what_it_is(self, repository):
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{ABSENT},vendor/library")
        repository.git("commit", "--quiet", "--message", "a submodule")

        blobs = Git(repository.path).blobs(repository.git("rev-parse", "HEAD"))

        assert blobs["vendor/library"] == ("160000", ABSENT)


class TestBaseline:
    def test_tags_that_are_versions_come_highest_first_without_those_of_the_commit_itself(self, repository):
        for tag in ("v1.9.0", "1.10.0rc1", "package-1.10.0.dev3", "nightly", "v2", "build-17"):
            repository.git("tag", tag)
        repository.git("tag", "--annotate", "--message", "annotated", "v1.2.0")
        repository.git("tag", "v9.9.9-tree", "HEAD^{tree}")
        repository.git("tag", "odd\u2028v9.9.9")
        candidate = repository.commit(tag="v3.0.0")
        repository.commit(tag="v4.0.0")

        assert Git(repository.path).version_tags(candidate) == [
            "1.10.0rc1", "package-1.10.0.dev3", "v1.9.0", "v1.2.0",
        ]  # fmt: skip

    def test_tags_of_another_branch_do_not_count(self, repository):
        repository.git("tag", "v1.0.0", "HEAD^")
        repository.git("switch", "--quiet", "--create", "side", "HEAD^")
        repository.commit(tag="v9.0.0")
        repository.git("switch", "--quiet", "main")

        assert Git(repository.path).version_tags("main") == ["v1.0.0"]

    def test_the_last_published_release_comes_first(self, repository):
        git, published = Git(repository.path), repository.git("rev-parse", "HEAD^")
        repository.git("tag", "v5.0.0", "HEAD^")
        candidate = repository.commit()

        assert git.choose_baseline(candidate, published) == (published, published, "last published release")

    def test_the_candidate_itself_is_no_baseline_even_if_it_was_published(self, repository):
        git, head = Git(repository.path), repository.git("rev-parse", "HEAD")
        repository.git("tag", "v5.0.0", "HEAD^")

        assert git.choose_baseline(head, head).ref == "v5.0.0"

    def test_then_the_highest_version_among_the_ancestors(self, repository):
        release = repository.commit(tag="v1.10.0")
        repository.commit(tag="v1.9.1")
        candidate = repository.commit()
        # A branch of the same name must not be taken for the tag.
        repository.git("branch", "v1.10.0", candidate)

        chosen = Git(repository.path).choose_baseline(candidate, None)

        assert chosen == (release, "v1.10.0", "highest version tag")

    def test_then_the_first_parent(self, repository):
        head, parent = repository.git("rev-parse", "HEAD", "HEAD^").splitlines()

        chosen = Git(repository.path).choose_baseline(head, None)

        assert chosen == (parent, f"{head[:12]}^", "parent commit")

    def test_a_first_commit_has_no_baseline(self, repository):
        with pytest.raises(NoBaseline, match="first commit") as refusal:
            Git(repository.path).choose_baseline(repository.git("rev-parse", "HEAD^"), None)

        assert (refusal.value.code, refusal.value.exit_code) == ("no-baseline", 2)
        assert "--baseline" in refusal.value.hint

    def test_a_published_release_that_is_gone_is_not_silently_replaced(self, repository):
        with pytest.raises(RefUnknown):
            Git(repository.path).choose_baseline(repository.git("rev-parse", "HEAD"), ABSENT)

    @pytest.mark.parametrize("depth", [1, 2])
    def test_a_shallow_clone_without_a_version_does_not_fall_back_to_the_parent(self, repository, tmp_path, depth):
        candidate = repository.commit()
        shallow = shallow_clone(repository, tmp_path / "shallow", depth)

        with pytest.raises(Shallow):
            shallow.choose_baseline(candidate, None)


class TestVersions:
    def test_versions_are_ordered_as_releases_are(self):
        in_order = [
            "v0.9", "1.0-SNAPSHOT", "1.0.dev1", "1.0a1", "1.0-alpha.2", "1.0b1", "1.0rc1", "v1.0.0-rc.2", "1.0",
            "1.0.post1", "1.0.1", "1.2", "1.10", "tool-1.10.1", "pkg/v1.10.2", "@scope/pkg@1.10.3", "2024.01.15",
        ]  # fmt: skip

        versions = [parse_version(tag) for tag in in_order]

        assert None not in versions
        assert sorted(versions) == versions

    @pytest.mark.parametrize("tag", ["v1.2", "1.2.0", "V1.2.0.0", "x-1.2", "1.2+build.5", "1.2.Final", "1.2.RELEASE"])
    def test_spellings_of_one_version_are_equal(self, tag):
        assert parse_version(tag) == Version((1, 2), 0, 0)

    @pytest.mark.parametrize(
        "tag", ["", "v", "v2", "latest", "build-17", "nightly-20240101", "1.2x", "1.2 3", "v1..2", "x" * 300, "1.2é"]
    )
    def test_other_tags_are_no_versions(self, tag):
        assert parse_version(tag) is None

    def test_a_number_of_thousands_of_digits_is_no_version(self):
        assert parse_version("1." + "9" * 5000) is None

    @given(st.text(alphabet="v0123456789.-_/@rcabdevpost+ \n", max_size=60))
    def test_no_tag_breaks_the_reader(self, tag):
        version = parse_version(tag)

        assert version is None or all(str(number) in tag for number in version.release)

    @given(
        numbers=st.lists(st.integers(0, 10**15), min_size=2, max_size=6),
        prefix=st.sampled_from(["", "v", "tool-", "tool/v", "a-b_1-", "@scope/pkg@"]),
    )
    def test_every_release_is_read_as_its_numbers(self, numbers, prefix):
        version = parse_version(prefix + ".".join(map(str, numbers)))

        assert version is not None
        padded = [*version.release, *[0] * (len(numbers) - len(version.release))]
        assert (padded, version.stage) == (numbers, 0)


def test_a_file_is_read_as_it_is_in_a_commit(make_repository):
    repository = make_repository("files")
    first = repository.commit({"a/b.txt": "one\n"})
    second = repository.commit({"a/b.txt": "two\n"})

    git = Git(repository.path)

    assert [git.file(commit, "a/b.txt") for commit in (first, second)] == [b"one\n", b"two\n"]
    assert git.file(first, "a/c.txt") is None
