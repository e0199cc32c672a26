# fish completion for `git-frites …`, and for `git frites …`, which fish's own git completion passes on.
# Only that of fish 3.6.0 does not; there this file completes it, if it is read when a shell starts. So
# install it in share/fish/vendor_conf.d, or ~/.config/fish/conf.d.
# fish does not pass on `git -C DIR`; completion then offers the runs of the current directory.

function __git_frites_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    # `git OPTION… frites WORD…` is `git-frites WORD…`.
    if test "$words[1]" = git
        set words git-frites $words[(math (contains --index -- frites $words) + 1)..]
    end
    set -l current (commandline --current-token --cut-at-cursor)
    # Words after `--` are a separate command.
    if set -l escape (contains --index -- -- $words)
        complete --do-complete=(string join ' ' -- (string escape -- $words[(math $escape + 1)..]) $current)
        return
    end
    FRITES_COMPLETE=fish git-frites -- $words "$current" 2>/dev/null
end

complete --command git-frites --exclusive --keep-order --arguments '(__git_frites_complete)'
if test "$version" = 3.6.0
    complete --command git --condition '__fish_git_using_command frites' --exclusive --keep-order --arguments '(__git_frites_complete)'
end

# The keys of `git config`, beside those that fish's git completion offers.
function __git_frites_config_keys
    set -l key (commandline --current-token --cut-at-cursor | string replace --regex '^frites\.' '')
    FRITES_COMPLETE=fish git-frites -- git-frites config "$key" 2>/dev/null | string replace --regex '^' frites.
end

complete --command git --condition '__fish_git_using_command config; and string match --quiet "fri*" (commandline --current-token --cut-at-cursor)' --no-files --arguments '(__git_frites_config_keys)'
