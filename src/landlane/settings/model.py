"""All settings: one class for each section of landlane.toml, one line for each key.

A field is named like its key, with the unit of its value: `ttl` is `ttl_ms`. `Settings()` holds the defaults.
Amounts of money are millionths of a US dollar. The reader of a key is in `readers.py`, under the same name.
"""

from __future__ import annotations

from landlane.settings.section import LISTED, NAMED, OPTIONAL, Section, key, nested, required

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Texts = tuple[str, ...]

FILE_NAME = "landlane.toml"
LOCAL_NAME = "local.toml"  # in the state folder: settings of this clone only

EVENT_KINDS = (
    *("commits", "dependencies", "red", "stalled", "paused", "pool", "stale-claim", "dead-session"),
    *("gate-waiting", "gate-reminder", "gate-overdue", "handoff-overdue", "dead-letter", "notify-failed"),
)
EVIDENCE = ("commit", "paths", "check", "output")
HANDOFF_KEYS = ("product", "context", "constraints", "next", "blockers", "assumptions")
PROTOCOLS = ("exit", "messages")
MERGE_KINDS = ("union", "sorted-set", "keyed-map", "counter", "generated")
MORE_PATHS = ("grant", "gate", "refuse")
PATH_NEEDS = ("optional", "required")
REDUCERS = ("append", "union", "max", "min", "sum", "merge")
# The tools and verbs of a role. The permissions of each client are derived from them.
ROLE_TOOLS = ("read", "edit", "shell", "network", "agents")
ROLE_VERBS = ("claim", "commit", "land", "deploy")
PATH_WORDS = ("@tests", "@documents", "@releases")
SAFETY_LEVELS = ("read-only", "propose", "commit", "trusted")  # safest first
BUILT_IN_ROLES = (
    *("orchestrator", "propose", "code", "test", "debug", "review", "verify"),
    *("explore", "document", "refactor", "security", "research", "release"),
)

# The coding clients that agents may name.
CLIENT_NAMES = ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "cursor", "aider", "gptme")

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


class RepositorySettings(Section):
    """Identity of the repository."""

    id: str = key("", "UUID", "identifies all clones of this repository; created on first use")


class StoreSettings(Section):
    """Where shared state is stored."""

    url: str = key("", "text", "a path, or a postgresql:// URL without a password; default: in git's folder")
    wait_ms: int = key(30 * _SECOND, "duration", "how long to wait for a busy store")


class SessionSettings(Section):
    """Sessions of agents."""

    lease_ms: int = key(30 * _MINUTE, "lease", "how long a session lives without activity")


class ClaimSettings(Section):
    """Claims on paths."""

    ttl_ms: int = key(30 * _MINUTE, "lease", "the lease of a claim without `--ttl`")
    max_ttl_ms: int = key(7 * _DAY, "lease", "the longest lease that may be requested")
    required: Texts = key((), "texts", "patterns whose changes need a claim; then nothing else needs one")
    free: Texts = key((), "texts", "patterns that need no claim, unless `required` lists them")
    shareable: Texts | None = key(None, "texts", "patterns that may be claimed `--shared`; default: all")
    ignore_case: bool | None = key(None, "boolean", "whether case is ignored in paths; default: as in git")
    agent_locks: bool = key(True, "boolean", "whether `FILE.agent-lock` in the tree is a claim of somebody")


class JournalSettings(Section):
    """The journal."""

    git: bool = key(False, "boolean", "also commit the journal to refs/landlane/journal")


class TaskSettings(Section):
    """Tasks and their evidence."""

    check_limit_ms: int = key(10 * _MINUTE, "duration", "how long the check of a task may run")
    evidence: Mapping[str, Texts] = key({}, "table of lists", "kind of task = evidence it needs", EVIDENCE)


class WorkspaceSettings(Section):
    """Workspaces: how they are made, and what they share."""

    folder: str = key("", "text", "where workspaces are, relative to the repository's root")
    kind: str = key("worktree", "one of", "how a workspace is made", ("worktree", "clone"))
    copy: Texts = key((), "texts", "ignored files to copy into a workspace, such as .env")
    link: Texts = key((), "texts", "ignored folders that workspaces share by a link")
    install: Texts = key((), "texts", "commands that install the project's dependencies")
    generate: Texts = key((), "texts", "commands that generate files that are not in git")
    check: str = key("", "text", "a command that must pass in a new workspace")
    slots: Mapping[str, str] = key({}, "variables", "environment variable = kind of slot leased for it")
    caches: Texts = key((), "texts", "files that can be rebuilt and may be deleted to free disk")
    disk_floor_bytes: int = key(0, "size", "free disk space below which caches are deleted")
    limit_ms: int = key(15 * _MINUTE, "duration", "how long each command of this section may run")


class LandingCheck(Section, short="run"):
    """A command that must pass on the merged tree before it lands; `checks = []` for none."""

    run: str = required("text", "the command")
    name: str = key("", "text", "its name in reports; default: the command")
    limit_ms: int | None = key(None, "duration", "how long it may run; default: `landing.check_limit`")
    retries: int = key(0, "retries", "how often it may be repeated when it fails")


class IntegrationTask(Section):
    """A task that is opened after landings to look at them together."""

    title: str = key("Check what landed together", "text", "its title")
    after: str = key("wave", "one of", "when it is opened", ("batch", "wave"))
    kind: str = key("", "text", "its kind; with `chore`, finding nothing to fix is enough")
    role: str = key("", "text", "its role")
    check: str = key("", "text", "its check")


class MergeFile(Section, short="kind"):
    """How concurrent changes of files are merged, by pattern; the last pattern that matches counts."""

    kind: str = required("one of", "the kind of merge", MERGE_KINDS)
    command: str = key("", "text", "for `generated`: the command that generates the file")
    validate: str = key("", "text", "a command that checks the result; the path is appended")
    pattern: str = key("", "text", "for `counter`: a regular expression that finds the number")
    begin: str = key("", "text", "for `sorted-set`: the line above the set")
    end: str = key("", "text", "for `sorted-set`: the line below the set")


class MergeSettings(Section):
    """Merging of files that many tasks change."""

    files: Mapping[str, MergeFile] = nested(MergeFile, NAMED)


class CheckSandboxSettings(Section):
    """What the sandbox of checks opens; without any of it, they write only in their checkout."""

    network: bool = key(False, "boolean", "whether checks may use the network")
    unix_sockets: bool = key(False, "boolean", "whether checks may use unix sockets, their own and others'")
    sockets: Texts = key((), "texts", "unix sockets of other programs that checks may use")
    write: Texts = key((), "texts", "folders that checks may change, such as a cache in the home")
    off: bool = key(False, "boolean", "whether checks run without a sandbox, as the last resort")


class LandingSettings(Section):
    """The landing queue."""

    target: str = key("", "text", "the branch that work lands on; default: the repository's main branch")
    remote: str = key("", "text", "the remote of the target branch; `none` to land in this repository only")
    checks: tuple[LandingCheck, ...] | None = nested(LandingCheck, LISTED, "what a merged tree must pass")
    check_limit_ms: int = key(30 * _MINUTE, "duration", "how long a check without a limit may run")
    style: str = key("merge", "one of", "how a branch lands", ("merge", "rebase", "squash"))
    batch: int = key(8, "number", "how many entries are tested together; up to four times that after success")
    gate: Texts = key((), "texts", "patterns whose changes a person must approve")
    placeholders: Texts = key((), "texts", "words that no added line may contain, such as TODO")
    resident: bool = key(True, "boolean", "whether a background process runs the queue when no command does")
    integrate: IntegrationTask | None = nested(IntegrationTask, OPTIONAL, "a task opened after landings")
    merge: MergeSettings = nested(MergeSettings)
    sandbox: CheckSandboxSettings = nested(CheckSandboxSettings)


class DeploySettings(Section):
    """A deploy target."""

    paths: Texts = key((), "texts", "patterns of what is deployed; default: everything")
    verify: str = key("", "text", "a command that checks the deploy")
    limit_ms: int = key(10 * _MINUTE, "duration", "how long the deploy and its check may run")
    branch: str = key("", "text", "the branch it must be deployed from; default: the target branch")
    gate: bool = key(False, "boolean", "whether a person must approve each deploy")


class RoleSettings(Section):
    """A role: a new one, or a change of a built-in one."""

    like: str = key("", "text", "the role it starts from: a built-in one, or one defined above")
    summary: str | None = key(None, "text", "one line about it")
    tools: Texts | None = key(None, "some of", "tools it may use", ROLE_TOOLS)
    writes: Texts | None = key(None, "paths", "patterns it may change; also `@tests` and the like")
    denies: Texts | None = key(None, "paths", "patterns taken away from `writes`")
    verbs: Texts | None = key(None, "verbs", "commands it may use", ROLE_VERBS)
    protected: bool | None = key(None, "boolean", "whether it may change protected files")
    connects: tuple[int, ...] | None = key(None, "ports", "TCP ports it may connect to; default: all")
    unix_sockets: bool | None = key(None, "boolean", "whether it may connect to Unix sockets")
    udp: bool | None = key(None, "boolean", "whether it may use UDP")
    safety: str | None = key(None, "one of", "the level that it must keep to, or a safer one", SAFETY_LEVELS)


class PathSettings(Section):
    """What the words `@tests`, `@documents` and `@releases` mean in roles, and which files are protected."""

    tests: Texts | None = key(None, "texts", "patterns for `@tests`; default: common names")
    documents: Texts | None = key(None, "texts", "patterns for `@documents`; default: common names")
    releases: Texts | None = key(None, "texts", "patterns for `@releases`; default: common names")
    protected: Texts = key((), "texts", "what no role may change, besides files that configure tools")


class SandboxSettings(Section):
    """The sandbox of `exec` and of workers."""

    required: Texts = key((), "texts", "sandbox guarantees without which nothing is started")
    unix_sockets: bool = key(False, "boolean", "whether every agent may use unix sockets of other programs")
    read: Texts = key((), "texts", "paths in the home that agents may read")
    variables: Texts = key((), "texts", "variables that agents get although they look like secrets")


class GateSettings(Section):
    """Decisions that wait for a person."""

    remind_ms: int = key(1 * _HOUR, "duration", "when a person is reminded of a waiting gate")
    overdue_ms: int = key(24 * _HOUR, "duration", "when a waiting gate is overdue")


class NotifySettings(Section):
    """Events: when they are noticed, and where they are sent."""

    interval_ms: int = key(30 * _SECOND, "duration", "how long `watch` waits between two looks")
    stalled_ms: int = key(30 * _MINUTE, "duration", "how long nothing may move before work is stalled")
    dependencies: Texts | None = key(None, "texts", "files that name dependencies; default: common names")
    command: str = key("", "text", "a shell command that gets each event as JSON on standard input")
    webhook: str = key("", "URL", "an http:// or https:// address that events are sent to")
    kinds: Texts = key((), "some of", "the kinds of events to send; default: all", EVENT_KINDS)
    limit_ms: int = key(10 * _SECOND, "duration", "how long the command or the receiver may take")
    tries: int = key(8, "number", "how often to try before giving up")


class RunSettings(Section):
    """Runs of workers."""

    workers: int | None = key(
        None,
        "number",
        "how many workers run at once in this repository, in all runs together; default: 4 in each run",
    )
    agent: str = key("", "text", "who does a task that names no agent: a client, or one of `[agents]`")
    role: str = key("", "text", "the role where neither task nor agent names one; default: `propose`")
    safety: str = key(
        "trusted", "one of", "the least safe level that the role of a worker may have", SAFETY_LEVELS
    )
    paths: str = key("optional", "one of", "whether a task must name its paths to be started", PATH_NEEDS)
    more_paths: str = key(
        "grant",
        "one of",
        "what a worker's claim of other free paths, with a reason, gets: the paths, a gate, a refusal",
        MORE_PATHS,
    )
    heartbeat_ms: int | None = key(
        None,
        "duration",
        "how long a worker may be silent before it is stopped; default: 1m, for plain commands 10m",
    )
    limit_ms: int = key(2 * _HOUR, "duration", "how long one attempt may take")
    memory_floor_bytes: int = key(0, "size", "free memory below which no worker is started")
    disk_floor_bytes: int = key(0, "size", "free disk space below which no worker is started")


class AgentSettings(Section):
    """A kind of worker: a coding client or a command."""

    command: Texts = key((), "texts", "the command of a worker, or")
    client: str = key("", "text", "the coding client")
    protocol: str = key(
        "exit",
        "one of",
        "how a command reports: `exit` by its exit code and changed files, `messages` by the worker protocol",
        PROTOCOLS,
    )
    model: str = key("", "text", "the model that the client uses")
    words: Texts = key((), "texts", "more arguments for the client")
    role: str = key("", "text", "the role where the task names none")
    needs: Mapping[str, int] = key({}, "table of numbers", "kind of slot = how many one worker takes")
    most: int = key(0, "number", "how many run at once, in all runs together; default: no limit of its own")
    unix_sockets: bool = key(False, "boolean", "whether it may use unix sockets of other programs")
    heartbeat_ms: int | None = key(None, "duration", "how long it may be silent; default: `run.heartbeat`")
    limit_ms: int | None = key(None, "duration", "how long one attempt may take; default: `run.limit`")


class RetrySettings(Section):
    """Limits on failing attempts; a task counts with its children and follow-ups."""

    max_attempts: int = key(10, "number", "failed attempts before a person is asked")
    last: str = key(
        "ask",
        "one of",
        "after the last attempt of a task: `ask` a person, or let it `fail` for good",
        ("ask", "fail"),
    )
    answer_ms: int | None = key(
        None, "duration", "how long that question waits before the task fails for good; default: forever"
    )
    max_tasks: int = key(60, "number", "children and follow-ups of one task")
    max_time_ms: int = key(24 * _HOUR, "duration", "how long failing attempts may take together")
    max_cost_micros: int | None = key(None, "US dollars", "what failing attempts may cost together")
    max_idle: int = key(2, "number", "successful attempts in a row that change nothing")
    max_starts: int = key(5, "number", "failures in a row to start work on one task")
    backoff_ms: int = key(5 * _SECOND, "duration", "the wait after the first failure; it doubles each time")
    backoff_cap_ms: int = key(10 * _MINUTE, "duration", "the longest wait between two attempts")


class BudgetSettings(Section):
    """Limits on cost; without one there is no limit."""

    task_micros: int | None = key(None, "US dollars", "for a task with its attempts, children and follow-ups")
    run_micros: int | None = key(None, "US dollars", "for everything that one `landlane run` starts")
    day_micros: int | None = key(None, "US dollars", "for each day, from midnight UTC")
    unknown_micros: int | None = key(None, "US dollars", "what an attempt of unknown cost counts for")


class Price(Section):
    """The price of a million tokens, by model; a name may end in `*`."""

    input_micros: int = required("US dollars", "for input")
    output_micros: int = required("US dollars", "for output")


class HandoffField(Section, short="type"):
    """A field of the project's own in a handoff."""

    type: str = key("text", "one of", "its type", ("text", "list", "number", "flag"))
    required: bool = key(False, "boolean", "whether every handoff must have it")
    longest: int | None = key(None, "number", "the most characters of a text")


class HandoffSettings(Section):
    """Handoffs between agents."""

    max: int = key(5, "number", "how often one piece of work may be handed off before a person decides")
    wait_ms: int = key(30 * _MINUTE, "lease", "how long it waits for its receiver before anyone may take it")
    required: Texts = key((), "some of", "parts that every handoff must have", HANDOFF_KEYS)
    fields: Mapping[str, HandoffField] = nested(HandoffField, NAMED)


class ReviewSettings(Section):
    """Reviews before landing."""

    paths: Texts = key((), "texts", "patterns whose changes need a review")
    kinds: Texts = key((), "texts", "kinds of tasks that need a review")
    reviewers: Texts = key((), "texts", "agents that review, each with its own verdict")
    count: int = key(1, "number", "how many reviewers there are, named or not")
    decider: str = key("", "text", "who decides when reviewers disagree: an agent, or `person`")


class RuleSettings(Section):
    """The rules of the project."""

    file: str = key("RULES.md", "text", "the rules that every session reads")


class HookSettings(Section):
    """Hooks of coding clients."""

    policy: str = key(
        "auto",
        "one of",
        "`auto` claims a free path on the first edit, `strict` needs a claim first, `watch` only reports",
        ("auto", "strict", "watch"),
    )
    remind: bool = key(True, "boolean", "whether a client that ends is reminded once of open work")


class WebSettings(Section):
    """The web page."""

    url: str = key("", "URL", "the https:// address of the proxy in front of the page, for other machines")


class MemorySettings(Section):
    """Files that every session is shown when it starts."""

    files: Texts = key((), "texts", "their paths: state, decisions, lessons")
    max_bytes: int = key(4_000, "number", "how much of each file is shown")


class StateSettings(Section):
    """Shared keys and values. Each glob of keys can have an owner, a reducer and an order."""

    max_bytes: int = key(65_536, "number", "the largest value")
    owned: Mapping[str, str] = key({}, "table of texts", "glob = its only writer: an agent, or role:NAME")
    reducers: Mapping[str, str] = key({}, "table of choices", "glob = how values are combined", REDUCERS)
    monotonic: Mapping[str, tuple[str | float, ...]] = key({}, "orders", "glob = list of values, in order")


class NumberSettings(Section):
    """A kind of number, such as that of migrations."""

    path: str = required("numbered path", "where numbers of this kind are used, with one `{n}`")
    width: int = key(0, "number", "digits, with leading zeros")


class SlotSettings(Section):
    """A kind of slot: `capacity` or `names`; for `port`, `range`."""

    capacity: int = key(0, "number", "how many there are")
    per_ms: int | None = key(None, "lease", "the capacity is for so long, such as requests per minute")
    names: Texts = key((), "names", "the names of the slots")
    range: tuple[int, int] | None = key(None, "port range", "the first and the last port, as [20000, 29999]")


class Settings(Section):
    """Everything that landlane.toml can hold."""

    repository: RepositorySettings = nested(RepositorySettings)
    store: StoreSettings = nested(StoreSettings)
    sessions: SessionSettings = nested(SessionSettings)
    claims: ClaimSettings = nested(ClaimSettings)
    journal: JournalSettings = nested(JournalSettings)
    tasks: TaskSettings = nested(TaskSettings)
    workspace: WorkspaceSettings = nested(WorkspaceSettings)
    landing: LandingSettings = nested(LandingSettings)
    deploy: Mapping[str, DeploySettings] = nested(DeploySettings, NAMED)
    roles: Mapping[str, RoleSettings] = nested(RoleSettings, NAMED)
    paths: PathSettings = nested(PathSettings)
    sandbox: SandboxSettings = nested(SandboxSettings)
    gates: GateSettings = nested(GateSettings)
    notify: NotifySettings = nested(NotifySettings)
    run: RunSettings = nested(RunSettings)
    agents: Mapping[str, AgentSettings] = nested(AgentSettings, NAMED)
    retries: RetrySettings = nested(RetrySettings)
    budgets: BudgetSettings = nested(BudgetSettings)
    prices: Mapping[str, Price] = nested(Price, NAMED)
    handoffs: HandoffSettings = nested(HandoffSettings)
    review: ReviewSettings = nested(ReviewSettings)
    rules: RuleSettings = nested(RuleSettings)
    hooks: HookSettings = nested(HookSettings)
    web: WebSettings = nested(WebSettings)
    memory: MemorySettings = nested(MemorySettings)
    state: StateSettings = nested(StateSettings)
    numbers: Mapping[str, NumberSettings] = nested(NumberSettings, NAMED)
    slots: Mapping[str, SlotSettings] = nested(SlotSettings, NAMED)

    @property
    def mergeable_patterns(self) -> Texts:
        """The patterns of paths that may be changed by several sessions at once."""
        return (*(self.claims.shareable or ()), *self.landing.merge.files)
