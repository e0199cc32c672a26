//! The agents that are built in. Each is described once:
//! * how it is started;
//! * its messages when it cannot go on;
//! * where it reports its usage;
//! * where it keeps its state.
use crate::model::agent_stop::AgentFault;
use crate::model::run::CODEX_SANDBOX;

/// A coding agent that git-frites knows how to start.
pub struct BuiltInAgent {
    /// The name for `--agent`.
    pub name: &'static str,
    /// The program and the options that run the agent non-interactively, from `--help` of the
    /// version that the comment on the agent names. `git config frites.agents.NAME.command`
    /// replaces them.
    pub command: &'static [&'static str],
    /// Patterns of what the agent prints when its account has reached a limit, as reported in its
    /// issue tracker.
    pub limit: &'static [&'static str],
    /// The words that the agent prints if a fault of its environment keeps it from working.
    pub faults: &'static [FaultWording],
    /// The variable that lets the agent run as root; `None` if it needs none for that.
    pub root_variable: Option<&'static str>,
    /// The names of variables, any one of which takes the place of a login. Empty if the agent may
    /// work without a login.
    pub login_variables: &'static str,
    /// The format in which `command` reports its usage; `None` if it does not report it.
    pub usage: Option<&'static str>,
    /// The directories in which the agent keeps its state; empty if no variable can move them.
    pub state: &'static [StateDirectory],
}

/// The words that an agent prints at one fault of its environment.
pub struct FaultWording {
    pub fault: AgentFault,
    /// Patterns of the words, as in [`BuiltInAgent::limit`].
    pub words: &'static [&'static str],
    /// The remedy for the fault, which only a person can apply.
    pub remedy: &'static str,
}

/// A directory in which an agent keeps its state.
pub struct StateDirectory {
    /// The variable that names the directory.
    pub variable: &'static str,
    /// The directory below HOME that is used if the variable is not set; empty for HOME itself.
    pub default: &'static str,
    /// If other programs use the variable, too: the agent's own subdirectory. Beside it, an
    /// attempt's directory has links to the user's entries for the other programs.
    pub own: Option<&'static str>,
    /// The files with the user's logins, each with the JSON keys of the tokens that the agent
    /// refreshes. There are no keys if the tokens in a file cannot be recognized. An attempt gets
    /// copies of the logins and settings.
    pub logins: &'static [(&'static str, &'static [&'static str])],
    /// The files and directories of settings that the agent runs or obeys, separated by blanks.
    pub settings: &'static str,
    /// Settings that are in HOME itself if the variable is not set.
    pub settings_in_home: &'static str,
    /// Patterns for the files of conversations; a `*` stands for any characters of one name. If the
    /// user goes on with an attempt's conversation, the agent gets copies of these files, and of
    /// the user's settings. So no pattern matches a file that the agent obeys, or that leads it to
    /// other files.
    pub conversations: &'static [&'static str],
    /// The place of conversations that are not copied, because it also holds data that the agent
    /// obeys; `None` if there is none.
    pub conversations_left: Option<&'static str>,
}

/// A directory about whose content nothing is known: the one that `variable` names, or else
/// `default` below HOME.
const fn directory(variable: &'static str, default: &'static str) -> StateDirectory {
    StateDirectory {
        variable,
        default,
        own: None,
        logins: &[],
        settings: "",
        settings_in_home: "",
        conversations: &[],
        conversations_left: None,
    }
}

impl StateDirectory {
    pub fn paths_of_logins(&self) -> impl Iterator<Item = &'static str> {
        self.logins.iter().map(|(path, _)| *path)
    }
}

/// The words that an agent prints if it has no network.
const fn no_network(words: &'static [&'static str]) -> FaultWording {
    let remedy = "connect this machine to the network";
    FaultWording { fault: AgentFault::NoNetwork, words, remedy }
}

/// The JSON keys under which JavaScript libraries for OAuth store tokens.
const CAMEL_CASE: &[&str] = &["accessToken", "refreshToken", "expiresAt"];

/// The built-in agents, in the order in which they are listed.
pub static BUILT_IN: [BuiltInAgent; 5] = [CLAUDE, CODEX, GEMINI, AIDER, OPENCODE];

/// Claude Code 2.1.197.
const CLAUDE: BuiltInAgent = BuiltInAgent {
    name: "claude",
    command: &["claude", "-p", "--permission-mode", "bypassPermissions", "--output-format", "json"],
    // Issues 9046, 54698, 74079 and 80062 of anthropics/claude-code.
    limit: &["usage limit reached", "you've hit your*limit", "credit balance is too low"],
    faults: &[
        FaultWording {
            fault: AgentFault::NotLoggedIn,
            words: &["please run /login", "invalid api key"],
            remedy: "start `claude` and type `/login`, or set ANTHROPIC_API_KEY",
        },
        FaultWording {
            fault: AgentFault::RefusesRoot,
            words: &["cannot be used with root/sudo privileges"],
            remedy: "be an ordinary user, or set IS_SANDBOX=1 on a machine that is a sandbox itself",
        },
        no_network(&["unable to connect to api"]),
    ],
    root_variable: Some("IS_SANDBOX"),
    login_variables: "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN
        CLAUDE_CODE_USE_BEDROCK CLAUDE_CODE_USE_VERTEX",
    usage: Some("claude"),
    state: if cfg!(target_os = "macos") {
        // The name of Claude's login in the keychain depends on the path of this directory, so
        // attempts use the user's own directory.
        &[]
    } else {
        &[StateDirectory {
            logins: &[(".credentials.json", CAMEL_CASE)],
            // The last two files name the places from which Claude reads the plugins themselves.
            settings: "settings.json settings.local.json CLAUDE.md rules agents commands skills
                hooks output-styles plugins/installed_plugins.json plugins/known_marketplaces.json",
            // This file has the account, the onboarding, the MCP servers, and data about projects.
            settings_in_home: ".claude.json",
            conversations: &["projects/*/*.jsonl", "projects/*/*/subagents/*.jsonl"],
            ..directory("CLAUDE_CONFIG_DIR", ".claude")
        }]
    },
};

/// Codex 0.169.0: `-` reads the prompt from standard input.
const CODEX: BuiltInAgent = BuiltInAgent {
    name: "codex",
    command: &["codex", "exec", "--json", "--skip-git-repo-check", "-s", CODEX_SANDBOX, "-"],
    // Issues 3124, 3899 and 26668 of openai/codex. Codex's JSON has `usage_limit_reached`.
    limit: &["you've hit your usage limit", "usage_limit_reached", "insufficient_quota"],
    faults: &[
        // Issues 6191, 7362 and 8703 of openai/codex.
        FaultWording {
            fault: AgentFault::NotLoggedIn,
            words: &[
                "unexpected status 401 unauthorized",
                "last status: 401 unauthorized",
                "access token could not be refreshed",
            ],
            remedy: "type `codex login`, or set CODEX_API_KEY",
        },
        FaultWording {
            fault: AgentFault::Distrusts,
            words: &["not inside a trusted directory"],
            remedy: "give its command `--skip-git-repo-check`",
        },
        no_network(&["waiting for network"]),
    ],
    root_variable: None,
    login_variables: "CODEX_API_KEY OPENAI_API_KEY",
    usage: Some("codex"),
    state: &[StateDirectory {
        logins: &[
            ("auth.json", &["id_token", "access_token", "refresh_token", "last_refresh"]),
            (".credentials.json", &["access_token", "refresh_token", "expires_at"]),
            (".env", &[]),
        ],
        settings: "config.toml AGENTS.md AGENTS.override.md hooks.json agents prompts rules skills",
        // Codex makes its databases anew from these files.
        conversations: &["sessions/*/*/*/*.jsonl", "archived_sessions/*.jsonl"],
        ..directory("CODEX_HOME", ".codex")
    }],
};

/// Gemini CLI 0.61.0: an empty `-p` makes Gemini read standard input, and exit when the task is
/// done.
const GEMINI: BuiltInAgent = BuiltInAgent {
    name: "gemini",
    command: &[
        "gemini",
        "--output-format",
        "stream-json",
        "--approval-mode",
        "yolo",
        "--skip-trust",
        "-p",
        "",
    ],
    // Issues 1088, 6962, 15576 and 18050 of google-gemini/gemini-cli.
    limit: &["you have exhausted your", "you exceeded your current quota", "resource_exhausted"],
    faults: &[
        FaultWording {
            fault: AgentFault::NotLoggedIn,
            words: &["please set an auth method", "opening authentication page in your browser"],
            remedy: "start `gemini` and choose a login, or set GEMINI_API_KEY",
        },
        FaultWording {
            fault: AgentFault::Distrusts,
            words: &["not running in a trusted directory"],
            remedy: "give its command `--skip-trust`",
        },
        no_network(&["fetch failed sending request"]),
    ],
    root_variable: None,
    login_variables: "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENAI_USE_VERTEXAI",
    usage: Some("gemini"),
    state: &[StateDirectory {
        logins: &[
            (
                ".gemini/oauth_creds.json",
                &["access_token", "refresh_token", "id_token", "expiry_date"],
            ),
            (".gemini/mcp-oauth-tokens.json", CAMEL_CASE),
            // This file is encrypted, so tokens in it cannot be recognized.
            (".gemini/gemini-credentials.json", &[]),
            (".gemini/.env", &[]),
            (".env", &[]),
        ],
        settings: ".gemini/google_accounts.json .gemini/settings.json .gemini/trustedFolders.json
            .gemini/GEMINI.md .gemini/agents .gemini/commands .gemini/extensions .gemini/policies
            .gemini/skills",
        // A copy of `projects.json` could lead Gemini to any directory. Without this file, Gemini
        // names the directory below `tmp` after the worktree again.
        conversations: &[
            ".gemini/tmp/*/chats/*.json",
            ".gemini/tmp/*/chats/*.jsonl",
            ".gemini/tmp/*/chats/*/*.jsonl",
        ],
        ..directory("GEMINI_CLI_HOME", "")
    }],
};

/// Aider 0.86.2 does not read a prompt from standard input, and commits by default. Its state is in
/// the worktree.
const AIDER: BuiltInAgent = BuiltInAgent {
    name: "aider",
    command: &[
        "aider",
        "--message-file",
        "{prompt_file}",
        "--yes-always",
        "--no-auto-commits",
        "--no-dirty-commits",
        "--no-gitignore",
        "--no-pretty",
        "--no-detect-urls",
        "--no-check-update",
    ],
    // Issues 1263 and 1686 of Aider-AI/aider. Aider itself tries again before it gives up.
    limit: &["litellm.ratelimiterror", "you exceeded your current quota", "insufficient_quota"],
    faults: &[FaultWording {
        fault: AgentFault::NotLoggedIn,
        words: &["litellm.authenticationerror", "no api keys were provided"],
        remedy: "set the key of its model's provider, such as ANTHROPIC_API_KEY",
    }],
    root_variable: None,
    login_variables: "",
    usage: None,
    state: &[],
};

/// A general directory, in which OpenCode has a subdirectory.
const fn xdg(variable: &'static str, default: &'static str) -> StateDirectory {
    StateDirectory { own: Some("opencode"), ..directory(variable, default) }
}

/// OpenCode 1.18.33.
const OPENCODE: BuiltInAgent = BuiltInAgent {
    name: "opencode",
    command: &["opencode", "run", "--format", "json", "--auto"],
    // Issues 13005, 42452, 47239 and 47747 of anomalyco/opencode.
    limit: &["usage limit has been reached", "rate limit exceeded", "freeusagelimiterror"],
    faults: &[FaultWording {
        fault: AgentFault::NotLoggedIn,
        words: &["\"name\":\"providerautherror\"", "\"statuscode\":401"],
        remedy: "type `opencode auth login`",
    }],
    root_variable: None,
    login_variables: "",
    usage: Some("opencode"),
    // OpenCode has no variable of its own that moves all of its state, so these general variables
    // are used.
    state: &[
        StateDirectory { settings: "opencode", ..xdg("XDG_CONFIG_HOME", ".config") },
        StateDirectory {
            logins: &[
                // An entry of the type `wellknown` names a server whose configuration OpenCode
                // obeys.
                ("opencode/auth.json", &["access", "refresh", "expires"]),
                ("opencode/mcp-auth.json", CAMEL_CASE),
            ],
            // The database also has accounts, permissions and commands, and can have triggers. In
            // the files of older versions (`storage/session`), each conversation has permissions,
            // too.
            conversations_left: Some("opencode"),
            ..xdg("XDG_DATA_HOME", ".local/share")
        },
        StateDirectory { settings: "opencode/model.json", ..xdg("XDG_STATE_HOME", ".local/state") },
        StateDirectory { settings: "opencode/models.json", ..xdg("XDG_CACHE_HOME", ".cache") },
    ],
};
