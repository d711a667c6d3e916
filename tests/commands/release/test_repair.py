"""Repairs of releases on real repositories: what is picked, what is refused, and what is left when it goes wrong."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.effects import worktrees
from commands.effects.git import Git
from commands.effects.release import repair as repairing
from commands.effects.release.remote import BranchInvalid, BranchMissing, PushRefused, Remote, TipRaced
from commands.effects.release.repair import (
    PickConflict,
    PickFailed,
    PickNotOnMain,
    PickNotSingle,
    PickPresent,
    PickRepeated,
    PickUnknown,
    Repair,
)
from commands.effects.worktrees import Owner
from tests.commands.release.hubs import Hub, Meanwhile

pytestmark = pytest.mark.real

BRANCH = "release/1.2.0"


class Release:
    """A release that was cut; afterwards two repairs and a change that builds on more landed on the main branch."""

    def __init__(self, hub: Hub, root: Path) -> None:
        self.hub, self.root, self.git = hub, root, Git(hub.ours.path)
        self.cut = hub.ours.git("rev-parse", "HEAD")
        hub.ours.git("push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")
        self.first = self.landed({"first.py": "FIXED = 1\n"})
        self.feature = self.landed({"app.py": "VALUE = 3\nNEW = True\n"})
        self.second = self.landed({"second.py": "FIXED = 2\n"})
        self.clash = self.landed({"app.py": "VALUE = 4\nNEW = True\n"})
        # The one who repairs need not have fetched anything.
        hub.ours.git("reset", "--quiet", "--hard", self.cut)
        hub.ours.git("fetch", "--quiet", "origin")

    def landed(self, files: dict[str, str]) -> str:
        """A commit that somebody else brought to the main branch."""
        self.hub.theirs.git("fetch", "--quiet", "origin")
        self.hub.theirs.git("checkout", "--quiet", "--detach", "origin/main")
        commit = self.hub.theirs.commit(dict(files))
        self.hub.theirs.git("push", "--quiet", "origin", "HEAD:refs/heads/main")
        return commit

    def repair(self, *picks: str, git: Git | None = None, dry_run: bool = False, branch: str = BRANCH) -> Repair:
        """Repair it; whatever comes of it, no worktree is left."""
        try:
            return repairing.repair(
                Remote(git or self.git, "origin"), branch, "main", picks,
                root=self.root, owner=Owner.here("ledger-1", "run-1"), dry_run=dry_run,
            )  # fmt: skip
        finally:
            assert worktrees.registered(self.git) == []
            assert not list(self.root.glob("*"))

    @property
    def tip(self) -> str:
        """Where the branch of the release is on the remote."""
        return self.hub.refs()[f"refs/heads/{BRANCH}"]

    def history(self) -> list[str]:
        """What was picked onto the branch since the cut, the oldest first."""
        messages = self.hub.ours.git(
            "log", "--reverse", "--format=%B", f"{self.cut}..{self.tip}", directory=self.hub.path
        )
        return re.findall(r"\(cherry picked from commit (\w+)\)", messages)


@pytest.fixture
def release(hub: Hub, tmp_path: Path) -> Release:
    """A release with a branch of its own, and a main branch that has gone on."""
    return Release(hub, tmp_path / "work" / "ledger-1")


class TestPicking:
    def test_commits_of_main_are_put_on_top_of_the_release_in_the_given_order(self, release):
        done = release.repair(release.second, release.first[:7])

        assert done == Repair(
            branch=BRANCH, tip=release.cut, commit=release.tip, picked=(release.second, release.first)
        )  # fmt: skip
        assert release.history() == [release.second, release.first]
        show = ("show", "--no-patch", "--format=%an %ae %s")
        assert release.hub.ours.git(*show, release.tip) == release.hub.ours.git(*show, release.first)
        listing = release.hub.ours.git("ls-tree", "--name-only", release.tip).splitlines()
        assert listing == ["app.py", "first.py", "second.py"]
        assert release.hub.ours.git("show", f"{release.tip}:app.py") == "VALUE = 2"

    def test_a_further_repair_goes_on_from_the_one_before(self, release):
        once = release.repair(release.first)
        again = release.repair(release.second)

        assert again.tip == once.commit
        assert release.history() == [release.first, release.second]

    def test_the_same_repair_again_finds_itself_and_changes_nothing(self, release):
        once = release.repair(release.first, release.second)
        again = release.repair(release.first, release.second)

        assert again == Repair(
            branch=BRANCH, tip=once.commit, commit=once.commit, picked=once.picked, existing=True
        )  # fmt: skip
        assert release.tip == once.commit

    def test_a_commit_that_was_itself_picked_from_elsewhere_is_found_again_as_well(self, release):
        theirs = release.hub.theirs
        release.landed({"third.py": ""})
        theirs.git("commit", "--quiet", "--amend", "--message", f"a\n\n(cherry picked from commit {'0' * 40})")
        theirs.git("push", "--quiet", "--force", "origin", "HEAD:refs/heads/main")
        third = theirs.git("rev-parse", "HEAD")

        assert not release.repair(third).existing
        assert release.repair(third).existing

    def test_a_trial_finds_out_everything_and_pushes_nothing(self, release):
        tried = release.repair(release.first, dry_run=True)

        assert tried == Repair(branch=BRANCH, tip=release.cut, commit=None, picked=(release.first,))
        with pytest.raises(PickConflict):
            release.repair(release.clash, dry_run=True)
        assert release.tip == release.cut

    def test_the_users_checkout_branches_and_index_stay_as_they_are(self, release):
        ours = release.hub.ours
        ours.write("app.py", "VALUE = 'changed'\n")
        ours.write("new.py", "")
        index = ours.path / ".git" / "index"

        def view() -> tuple[object, ...]:
            refs = ours.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash")
            status = ours.git("--no-optional-locks", "status", "--porcelain")
            return refs, status, index.read_bytes(), (ours.path / ".git" / "HEAD").read_text()

        before = view()
        release.repair(release.first)
        assert view() == before

    def test_a_change_that_was_reverted_on_the_branch_can_be_picked_again(self, release):
        release.repair(release.first)
        theirs = release.hub.theirs
        theirs.git("fetch", "--quiet", "origin")
        theirs.git("checkout", "--quiet", "--detach", f"origin/{BRANCH}")
        theirs.git("revert", "--no-edit", "HEAD")
        theirs.git("push", "--quiet", "origin", f"HEAD:refs/heads/{BRANCH}")

        assert not release.repair(release.first).existing
        assert release.hub.ours.git("show", f"{release.tip}:first.py") == "FIXED = 1"

    def test_who_commits_may_be_told_in_variables(self, release, monkeypatch):
        monkeypatch.setenv("GIT_COMMITTER_NAME", "The Release Robot")
        monkeypatch.setenv("GIT_COMMITTER_EMAIL", "robot@example.org")

        release.repair(release.first)

        assert (
            release.hub.ours.git("show", "--no-patch", "--format=%cn %an", release.tip) == "The Release Robot A Tester"
        )


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [("abc", PickUnknown), ("main", PickUnknown), ("0123456789", PickUnknown), ("--abort", PickUnknown)],
    )
    def test_what_is_no_id_of_a_commit(self, release, given, expected):
        with pytest.raises(expected):
            release.repair(given)
        assert release.tip == release.cut

    def test_a_branch_whose_name_looks_like_an_id_is_not_taken_for_one(self, release):
        release.hub.ours.git("branch", release.first[:8], release.second)

        with pytest.raises(PickUnknown):
            release.repair(release.first[:8])
        assert release.repair(release.first).picked == (release.first,)

    def test_a_commit_that_has_not_landed(self, release):
        elsewhere = release.hub.others_push("feature")

        with pytest.raises(PickUnknown):
            release.repair(elsewhere)
        release.hub.ours.git("fetch", "--quiet", "origin")
        with pytest.raises(PickNotOnMain, match="is not on main of origin"):
            release.repair(release.first, elsewhere)
        assert release.tip == release.cut

    def test_what_landed_only_here_has_not_landed(self, release):
        mine = release.hub.ours.commit({"mine.py": ""})

        with pytest.raises(PickNotOnMain):
            release.repair(mine)

    def test_the_same_commit_twice(self, release):
        with pytest.raises(PickRepeated):
            release.repair(release.first, release.first[:9])

    def test_a_merge_and_the_first_commit_of_all(self, release):
        theirs = release.hub.theirs
        release.hub.others_push("feature", start="origin/main^")
        theirs.git("checkout", "--quiet", "--detach", "origin/main")
        theirs.git("fetch", "--quiet", "origin")
        theirs.git("merge", "--quiet", "--no-edit", "origin/feature")
        theirs.git("push", "--quiet", "origin", "HEAD:refs/heads/main")

        for commit in (theirs.git("rev-parse", "HEAD"), theirs.git("rev-list", "--max-parents=0", "HEAD")):
            with pytest.raises(PickNotSingle):
                release.repair(commit)

    @pytest.mark.parametrize("branch", ["main", "release/1.2", "release/../main", ""])
    def test_a_branch_that_is_none_of_a_release(self, release, branch):
        before = release.hub.refs()
        with pytest.raises(BranchInvalid):
            release.repair(release.first, branch=branch)
        assert release.hub.refs() == before

    def test_a_release_that_was_never_cut(self, release):
        with pytest.raises(BranchMissing, match=r"release/1\.3\.0"):
            release.repair(release.first, branch="release/1.3.0")

    def test_a_commit_that_the_release_was_cut_with(self, release):
        with pytest.raises(PickPresent, match="is on release"):
            release.repair(release.cut)

    def test_a_commit_whose_change_came_to_the_branch_on_another_way(self, release):
        release.repair(release.first)
        release.repair(release.second)
        before = release.tip

        with pytest.raises(PickPresent, match="has everything that"):
            release.repair(release.first)
        assert release.tip == before

    def test_a_conflict_names_commit_and_files_and_pushes_nothing_of_what_did_fit(self, release):
        with pytest.raises(PickConflict, match=r"conflicts with release/1\.2\.0 in app\.py;") as conflict:
            release.repair(release.first, release.clash)
        assert release.clash[:12] in conflict.value.message
        assert release.tip == release.cut

    def test_what_was_resolved_on_this_machine_once_does_not_resolve_a_conflict(self, release):
        ours = release.hub.ours
        ours.git("config", "rerere.enabled", "true")
        ours.git("config", "rerere.autoUpdate", "true")
        ours.git("checkout", "--quiet", "--detach", release.cut)
        subprocess.run(["git", "cherry-pick", release.clash], cwd=ours.path, capture_output=True, check=False)
        ours.commit({"app.py": "VALUE = 'resolved by hand'\n"})
        ours.git("checkout", "--quiet", "main")

        with pytest.raises(PickConflict):
            release.repair(release.clash)

    def test_without_anybody_who_commits(self, release, monkeypatch):
        for name in ("user.name", "user.email"):
            release.hub.ours.git("config", "--unset", name)
        release.hub.ours.git("config", "user.useConfigOnly", "true")

        with pytest.raises(PickFailed) as failed:
            release.repair(release.first)
        assert "user.name" in failed.value.hint
        assert release.tip == release.cut

    def test_a_git_that_could_not_even_begin_is_not_taken_for_a_change_that_is_there_already(self, release):
        lock = release.hub.ours.path / ".git" / "worktrees" / "repair" / "index.lock"
        git = Meanwhile(release.hub.ours.path, "cherry-pick", lock.touch)

        with pytest.raises(PickFailed, match="could not be picked"):
            release.repair(release.first, git=git)
        assert release.tip == release.cut

    def test_a_remote_that_takes_no_pushes(self, release):
        release.hub.hook("pre-receive", "exit 1")

        with pytest.raises(PushRefused):
            release.repair(release.first)
        assert release.tip == release.cut


class TestRaces:
    @pytest.mark.parametrize("verb", ["fetch", "worktree", "cherry-pick", "push"])
    def test_whoever_pushes_meanwhile_is_not_overwritten(self, release, verb):
        theirs: list[str] = []

        def others() -> None:
            theirs.append(release.hub.others_push(BRANCH, start=f"origin/{BRANCH}"))

        git = Meanwhile(release.hub.ours.path, verb, others)
        if verb == "fetch":
            # The first fetch is that of the main branch: the tip is read afterwards, and is the new one.
            assert release.repair(release.first, git=git).tip == theirs[0]
        else:
            with pytest.raises(TipRaced):
                release.repair(release.first, git=git)
            assert release.tip == theirs[0]
            assert release.repair(release.first).tip == theirs[0]
        assert release.history() == [release.first]


class TestKilled:
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("verb", ["worktree", "cherry-pick", "push"])
    def test_the_worktree_is_found_later_and_the_repair_made_exactly_once(self, release, verb, when):
        script = Path(__file__).with_name("one_repair.py")
        argv = [sys.executable, str(script), str(release.hub.ours.path), str(release.root), verb, when]
        killed = subprocess.run([*argv, release.first, release.second], capture_output=True, timeout=60, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
        pushed = (verb, when) == ("push", "after")
        assert (release.tip != release.cut) == pushed
        left = worktrees.registered(release.git)
        assert len(left) == (0 if (verb, when) == ("worktree", "before") else 1)

        reaped = worktrees.reap(release.git, release.root, lambda owner: False, time.time())

        assert reaped.removed == len(left)
        done = release.repair(release.first, release.second)
        assert done.existing == pushed
        assert release.tip == done.commit
        assert release.history() == [release.first, release.second]

    def test_the_same_repair_again_clears_what_its_killed_predecessor_left(self, release):
        script = Path(__file__).with_name("one_repair.py")
        argv = [sys.executable, str(script), str(release.hub.ours.path), str(release.root), "push", "before"]
        subprocess.run([*argv, release.first], capture_output=True, timeout=60, check=False)
        assert len(worktrees.registered(release.git)) == 1

        assert release.repair(release.first).commit == release.tip
