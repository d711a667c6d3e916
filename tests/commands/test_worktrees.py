"""Worktrees below the work root: made, removed and reaped with real git, real files and real processes."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.config.settings import Settings
from commands.effects import worktrees
from commands.effects.git import Git
from commands.effects.worktrees import Owner, Reaped, WorkRootRefused, WorktreeFailed

pytestmark = pytest.mark.real

HOUR = 3600.0


@pytest.fixture
def git(repository):
    return Git.discover(repository.path)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "work" / "ledger-1"


@pytest.fixture
def owner():
    return Owner.here("ledger-1", "run-1")


@pytest.fixture
def dead_owner(owner):
    """An owner whose process lived on this host and boot and has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        started = Owner.here("ledger-1", "run-1").started
    return replace(owner, pid=process.pid, started=started)


def side(root, run="run-1", name="candidate"):
    return worktrees.side_directory(root, run, name)


def registered_paths(git):
    return [record.path for record in worktrees.registered(git)]


def users_view(repository):
    """Everything of the user's checkout that a worktree must leave alone."""
    index = repository.path / ".git" / "index"
    return {
        "status": repository.git("--no-optional-locks", "status", "--porcelain"),
        "branches": repository.git("for-each-ref"),
        "head": (repository.path / ".git" / "HEAD").read_text(),
        "stashes": repository.git("stash", "list"),
        "index": (index.read_bytes(), index.stat().st_mtime_ns),
        "config": (repository.path / ".git" / "config").read_bytes(),
    }


class TestAdd:
    def test_the_checkout_holds_the_commit_and_names_its_owner(self, git, repository, root, owner):
        first = repository.git("rev-parse", "HEAD^")

        made = worktrees.add(git, root, side(root), first, owner)

        assert made == (side(root), first, ())
        assert (made.path / "app.py").read_text() == "VALUE = 1\n"
        assert Git.discover(made.path).resolve("HEAD") == first
        (record,) = worktrees.registered(git)
        assert (record.path, Owner.parse(record.reason)) == (side(root), owner)
        assert "run-1" in repository.git("worktree", "list", "--porcelain")

    def test_the_users_checkout_index_branches_and_stashes_stay_as_they_are(self, git, repository, root, owner):
        repository.write("app.py", "VALUE = 'stashed'\n")
        repository.git("stash")
        repository.write("app.py", "VALUE = 'changed'\n")
        repository.write("new.py", "")
        repository.git("status")
        before = users_view(repository)

        worktrees.add(git, root, side(root), repository.git("rev-parse", "HEAD^"), owner)
        after_add = users_view(repository)
        worktrees.remove(git, root, side(root))

        assert after_add == before
        assert users_view(repository) == before
        assert before["stashes"]

    def test_hooks_of_the_repository_do_not_run(self, git, repository, root, owner, tmp_path):
        hook = repository.path / ".git" / "hooks" / "post-checkout"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
        hook.chmod(0o755)

        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert not (tmp_path / "hook-ran").exists()
        repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "by-hand"))
        assert (tmp_path / "hook-ran").exists(), "the hook would have run for anyone else"

    def test_every_file_is_there_even_if_the_users_checkout_is_sparse(self, git, repository, root, owner):
        repository.git("sparse-checkout", "set", "--no-cone", "/app.py")
        assert not (repository.path / "tests").exists()

        made = worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert (made.path / "tests" / "test_app.py").exists()

    def test_content_filters_run_as_in_the_users_checkout(self, git, repository, root, owner):
        commit = repository.commit({".gitattributes": "*.dat filter=swap\n", "a.dat": "pointer"})
        repository.git("config", "filter.swap.smudge", "sed s/pointer/content/")

        made = worktrees.add(git, root, side(root), commit, owner)

        assert (made.path / "a.dat").read_text() == "content"

    def test_a_filter_that_fails_makes_no_half_worktree(self, git, repository, root, owner):
        commit = repository.commit({".gitattributes": "*.dat filter=swap\n", "a.dat": "pointer"})
        repository.git("config", "filter.swap.smudge", "false")
        repository.git("config", "filter.swap.required", "true")

        with pytest.raises(WorktreeFailed, match="filter") as failure:
            worktrees.add(git, root, side(root), commit, owner)

        assert (failure.value.code, failure.value.exit_code) == ("worktree-failed", 4)
        assert failure.value.hint
        assert registered_paths(git) == []
        assert not side(root).exists()

    def test_submodules_stay_empty_and_are_named(self, git, repository, root, owner):
        gitlink = f"160000,{repository.git('rev-parse', 'HEAD')},vendor/library"
        repository.git("update-index", "--add", "--cacheinfo", gitlink)
        repository.git("commit", "--quiet", "--message", "a submodule")

        made = worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert made.submodules == ("vendor/library",)
        assert list((made.path / "vendor" / "library").iterdir()) == []

    def test_what_a_dead_driver_of_the_same_run_left_is_made_anew(self, git, repository, root, dead_owner, owner):
        commit = git.resolve("HEAD")
        worktrees.add(git, root, side(root), commit, dead_owner)
        (side(root) / "app.py").write_text("changed by a killed test")
        (side(root) / "leftover").touch()

        worktrees.add(git, root, side(root), commit, owner)

        assert (side(root) / "app.py").read_text() == "VALUE = 2\n"
        assert not (side(root) / "leftover").exists()
        assert [Owner.parse(record.reason) for record in worktrees.registered(git)] == [owner]

    def test_a_registered_worktree_whose_files_are_gone_is_made_anew(self, git, root, dead_owner, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), dead_owner)
        shutil.rmtree(root)

        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert (side(root) / "app.py").exists()

    def test_what_a_killed_git_left_half_made_is_made_anew(self, git, root, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)
        lock = git.common_directory / "worktrees" / "candidate" / "locked"
        lock.write_text("initializing")
        (side(root) / ".git").unlink()

        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert Git.discover(side(root)).toplevel == side(root)

    @pytest.mark.parametrize("lock", ["my own", ""])
    def test_a_worktree_that_somebody_else_made_there_is_not_touched(self, git, repository, root, owner, lock):
        repository.git("worktree", "add", "--quiet", "--detach", str(side(root)))
        if lock:
            repository.git("worktree", "lock", "--reason", lock, str(side(root)))
        (side(root) / "work").touch()

        with pytest.raises(WorktreeFailed, match="not of this run"):
            worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert (side(root) / "work").exists()

    def test_files_in_the_way_are_not_touched(self, git, root, owner):
        side(root).mkdir(parents=True)
        (side(root) / "work").touch()

        with pytest.raises(WorktreeFailed, match="already exists"):
            worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        assert (side(root) / "work").exists()

    def test_names_with_spaces_and_newlines_work(self, make_repository, tmp_path, owner):
        made = make_repository("pro ject\nü")
        commit = made.commit({"a b\nc": "1"})
        git, root = Git.discover(made.path), tmp_path / "wo rk\nü"

        path = worktrees.add(git, root, side(root), commit, owner).path

        assert (path / "a b\nc").read_text() == "1"
        worktrees.remove(git, root, path)
        assert registered_paths(git) == []

    def test_a_linked_worktree_of_the_user_can_be_the_place_to_work_from(self, repository, root, owner, tmp_path):
        repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
        git = Git.discover(tmp_path / "linked")

        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)
        worktrees.remove(git, root, side(root))

        assert registered_paths(git) == [tmp_path / "linked"]


class TestRemove:
    def test_files_registration_and_empty_parents_go(self, git, root, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)
        (side(root) / "deep" / "er").mkdir(parents=True)
        (side(root) / "deep" / "er" / "file").touch()

        worktrees.remove(git, root, side(root))

        assert registered_paths(git) == []
        assert not (root / "run-1").exists()
        assert root.exists()

    def test_removing_twice_is_no_error(self, git, root, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        worktrees.remove(git, root, side(root))
        worktrees.remove(git, root, side(root))

        assert registered_paths(git) == []

    def test_a_checkout_that_is_missing_only_loses_its_own_registration(self, git, root, owner):
        for name in ("candidate", "baseline"):
            worktrees.add(git, root, side(root, name=name), git.resolve("HEAD"), owner)
            shutil.rmtree(side(root, name=name))

        worktrees.remove(git, root, side(root))

        assert registered_paths(git) == [side(root, name="baseline")]

    def test_symbolic_links_are_deleted_and_not_followed(self, git, root, owner, tmp_path):
        (tmp_path / "precious").mkdir(mode=0o755)
        (tmp_path / "precious" / "file").touch()
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)
        (side(root) / "link").symlink_to(tmp_path / "precious")

        worktrees.remove(git, root, side(root))

        assert (tmp_path / "precious" / "file").exists()

    def test_what_is_not_below_the_root_is_refused_and_not_touched(self, git, root, owner, tmp_path):
        root.mkdir(parents=True)
        (tmp_path / "precious" / "candidate").mkdir(parents=True)
        (root / "link").symlink_to(tmp_path / "precious")
        (root / "direct").symlink_to(tmp_path / "precious")
        outside = [
            root, root.parent, root / "..", root / ".", root / "run" / ".." / "..", tmp_path / "precious" / "candidate",
            root / "link" / "candidate", root / "direct", Path(f"{root}-other") / "run" / "candidate", Path("/"),
        ]  # fmt: skip

        for path in outside:
            with pytest.raises(WorkRootRefused):
                worktrees.remove(git, root, path)
            with pytest.raises(WorkRootRefused):
                worktrees.add(git, root, path, git.resolve("HEAD"), owner)

        assert (tmp_path / "precious" / "candidate").exists()
        assert (root / "link").is_symlink()


@pytest.fixture
def unprivileged():
    """A directory of a user who is not root, who this process is for the time of the test."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory() as directory:
            yield Path(os.path.realpath(directory))
        return
    directory = Path(os.path.realpath(tempfile.mkdtemp()))
    os.chown(directory, 65534, 65534)
    os.seteuid(65534)
    try:
        yield directory
    finally:
        os.seteuid(0)
        shutil.rmtree(directory)


def test_read_only_directories_that_tests_left_are_removed_too(unprivileged, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    project = unprivileged / "project"
    project.mkdir()
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for command in (["init", "--quiet"], [*identity, "commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *command], cwd=project, check=True, timeout=60)
    git, root = Git.discover(project), unprivileged / "work"
    tree = worktrees.add(git, root, side(root), git.resolve("HEAD"), Owner.here("ledger-1", "run-1")).path
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked" / "inner" / "file").touch()
    (tree / "locked" / "inner").chmod(0o000)
    (tree / "locked").chmod(0o500)

    worktrees.remove(git, root, tree)

    assert not tree.exists()
    assert registered_paths(git) == []


class TestReap:
    def reap(self, git, root, *, is_alive=lambda owner: False, hours_later=0.0, **options):
        return worktrees.reap(git, root, is_alive, time.time() + hours_later * HOUR, **options)

    def test_nothing_to_do_is_all_zero(self, git, root):
        assert self.reap(git, root) == Reaped()

    def test_a_provably_dead_owner_loses_even_a_young_worktree(self, git, root, dead_owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), dead_owner)

        assert self.reap(git, root) == Reaped(listed=1, candidates=1, removed=1)
        assert registered_paths(git) == []
        assert not side(root).exists()

    def test_a_live_owner_keeps_its_worktree_however_old_it_is(self, git, root, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)

        reaped = self.reap(git, root, is_alive=lambda asked: asked == owner, hours_later=100)

        assert reaped == Reaped(listed=1, candidates=1, kept_live=1)
        assert side(root).exists()

    @pytest.mark.parametrize("elsewhere", [{"host": "another-host"}, {"boot": "an earlier boot"}, {"boot": ""}])
    def test_an_owner_whose_process_cannot_be_looked_up_is_given_two_hours(self, git, root, dead_owner, elsewhere):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), replace(dead_owner, **elsewhere))

        assert self.reap(git, root, hours_later=1.9) == Reaped(listed=1, candidates=1, kept_young=1)
        assert side(root).exists()
        assert self.reap(git, root, hours_later=2.1) == Reaped(listed=1, candidates=1, removed=1)

    def test_the_number_of_a_dead_process_that_another_one_has_now_does_not_save_it(self, git, root, owner):
        assert not owner.provably_dead()

        worktrees.add(git, root, side(root), git.resolve("HEAD"), replace(owner, started="1"))

        assert self.reap(git, root).removed == 1

    def test_what_the_user_made_elsewhere_is_never_looked_at(self, git, repository, root, tmp_path):
        repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "mine"))
        repository.git("worktree", "add", "--quiet", "--detach", f"{root}-mine/run/candidate")

        assert self.reap(git, root, hours_later=1000) == Reaped(listed=2)
        assert (tmp_path / "mine" / "app.py").exists()

    @pytest.mark.parametrize("lock", ["mine", 'release-ledger {"ledger": 1}', "release-ledger", ""])
    def test_what_has_no_owner_of_ours_is_kept(self, git, repository, root, lock):
        repository.git("worktree", "add", "--quiet", "--detach", str(side(root)))
        if lock:
            repository.git("worktree", "lock", "--reason", lock, str(side(root)))

        assert self.reap(git, root, hours_later=1000) == Reaped(listed=1, candidates=1, kept_foreign=1)
        assert side(root).exists()

    def test_what_a_killed_git_left_half_made_goes_when_it_is_old(self, git, root, owner):
        worktrees.add(git, root, side(root), git.resolve("HEAD"), owner)
        (git.common_directory / "worktrees" / "candidate" / "locked").write_text("initializing")

        assert self.reap(git, root, hours_later=1).kept_young == 1
        assert self.reap(git, root, hours_later=3).removed == 1

    def test_a_missing_checkout_only_loses_its_own_record(self, git, repository, root, dead_owner, tmp_path):
        repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "usb-stick"))
        worktrees.add(git, root, side(root), git.resolve("HEAD"), dead_owner)
        shutil.rmtree(side(root))
        shutil.rmtree(tmp_path / "usb-stick")

        assert self.reap(git, root) == Reaped(listed=2, candidates=1, removed=1)
        assert registered_paths(git) == [tmp_path / "usb-stick"]

    def test_only_so_many_are_removed_in_one_call(self, git, root, dead_owner):
        for number in range(3):
            owner = replace(dead_owner, run=f"run-{number}")
            worktrees.add(git, root, side(root, f"run-{number}"), git.resolve("HEAD"), owner)

        assert self.reap(git, root, limit=2) == Reaped(listed=3, candidates=3, removed=2, deferred=1)
        assert self.reap(git, root, limit=2) == Reaped(listed=1, candidates=1, removed=1)

    def test_one_that_cannot_be_removed_does_not_keep_the_others(self, git, root, dead_owner):
        for run in ("a", "b"):
            worktrees.add(git, root, side(root, run), git.resolve("HEAD"), replace(dead_owner, run=run))
        shutil.rmtree(side(root, "a"))
        side(root, "a").symlink_to("/")

        assert self.reap(git, root) == Reaped(listed=2, candidates=2, removed=1, failed=1)
        assert registered_paths(git) == [side(root, "a")]

    def test_of_unregistered_directories_only_old_and_empty_ones_go(self, git, root, owner):
        worktrees.add(git, root, side(root, "live"), git.resolve("HEAD"), owner)
        (root / "empty" / "candidate").mkdir(parents=True)
        (root / "used" / "candidate").mkdir(parents=True)
        (root / "used" / "candidate" / "work").touch()
        (root / "link").symlink_to(root / "used")

        assert self.reap(git, root, is_alive=lambda _: True, hours_later=1).orphans_removed == 0
        reaped = self.reap(git, root, is_alive=lambda _: True, hours_later=3)

        assert reaped == Reaped(listed=1, candidates=1, kept_live=1, orphans_removed=2)
        assert not (root / "empty").exists()
        assert (root / "used" / "candidate" / "work").exists()
        assert side(root, "live").exists()


class TestOwner:
    def test_the_reason_is_one_line_and_reads_back(self, owner):
        odd = replace(owner, run='quo"te', host="ho st", ledger="line\nbreak é")

        assert "\n" not in odd.reason()
        assert Owner.parse(odd.reason()) == odd
        assert (owner.pid, owner.host) == (os.getpid(), socket.gethostname())

    @pytest.mark.parametrize(
        "reason", ["", "mine", "release-ledger ", "release-ledger {}", "release-ledger [1]", "release-ledger \udcff"]
    )
    def test_any_other_reason_is_no_owner(self, reason):
        assert Owner.parse(reason) is None


class TestWorkRoot:
    def test_by_default_it_is_in_the_users_cache_and_belongs_to_one_ledger(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

        root = worktrees.work_root(Settings(), "ledger-1", tmp_path / "project")

        assert root == tmp_path / "cache" / "release-ledger" / "ledger-1"

    def test_another_place_can_be_configured(self, tmp_path):
        root = worktrees.work_root(Settings(work=str(tmp_path / "w")), "ledger-1", tmp_path / "project")

        assert root == tmp_path / "w" / "ledger-1"

    def test_a_place_in_the_checkout_is_refused_also_through_a_link(self, tmp_path):
        (tmp_path / "project" / "work").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "project" / "work")

        for place in (tmp_path / "project" / ".git" / "work", tmp_path / "link"):
            with pytest.raises(WorkRootRefused) as refusal:
                worktrees.work_root(Settings(work=str(place)), "ledger-1", tmp_path / "project")
            assert (refusal.value.code, refusal.value.exit_code) == ("work-root-refused", 2)
            assert "LEDGER_WORK" in refusal.value.hint
