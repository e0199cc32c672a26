# bash completion (3.2 and later) for `git-frites …`, and for `git frites …` if git's own completion is loaded,
# which makes bash-completion load this file by its installed name, and calls _git_frites.
# Install it in share/bash-completion/completions/git-frites, or source it.
# `git config frites.…` is completed once this file has been read after git's completion: bash-completion reads both
# when they are first needed, and `git config` needs only git's.

# Fills COMPREPLY. `words` is the command line from the command up to the cursor; `cword` is the number of the last
# word. The arguments start git-frites in the directory in which it would run.
__git_frites_complete ()
{
	local i breaks cut='' cur=${words[cword]} candidate
	COMPREPLY=()
	for ((i = 0; i < cword; i++)); do
		if [[ ${words[i]} == -- ]]; then
			__git_frites_command
			return
		fi
	done
	compopt +o bashdefault +o default -o nospace 2>/dev/null
	# readline puts in what follows the last break character alone; an `@` itself, too.
	breaks=${COMP_WORDBREAKS//[^=:@]/}
	[[ -z $breaks ]] || cut=${cur%"${cur##*[$breaks]}"}
	cut=${cut%@}
	while IFS= read -r candidate; do
		case $candidate in
		'') ;;
		*[/=]) COMPREPLY+=("${candidate#"$cut"}") ;;
		*) COMPREPLY+=("${candidate#"$cut"} ") ;;
		esac
	done <<<"$(FRITES_COMPLETE=bash _CLAP_COMPLETE_INDEX=$cword _CLAP_IFS=$'\n' "$@" -- "${words[@]}" 2>/dev/null)"
}

# Words after `--` are a separate command.
__git_frites_command ()
{
	local i
	compopt -o bashdefault -o default 2>/dev/null
	for ((i = 0; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			compopt +o nospace 2>/dev/null
			if declare -F _comp_command_offset >/dev/null; then
				_comp_command_offset $((i + 1))
			elif declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			fi
			return
		fi
	done
}

# Sets `words` and `cword` from the line up to the cursor, which bash has also split at `=`, `:` and `@`.
__git_frites_words ()
{
	local i word rest line=${COMP_LINE:0:COMP_POINT}
	words=() cword=-1
	for ((i = 0; i <= COMP_CWORD; i++)); do
		rest=${line#"${line%%[![:space:]]*}"}
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$rest
		if ((cword < 0)) || [[ $rest != "$line" ]]; then
			words[++cword]=$word
		else
			words[cword]+=$word
		fi
		line=${rest#"$word"}
	done
}

# Puts the keys of git-frites beside those of git. git's completion cannot be extended with keys, so the function that
# offers them is replaced by one that calls it for all other keys.
__git_frites_extend_config ()
{
	local gits
	gits=$(declare -f __git_complete_config_variable_name) || return
	[[ $gits != *__git_frites_config_keys* ]] || return
	eval "__git_frites_gits${gits#__git_complete}"
	__git_complete_config_variable_name ()
	{
		__git_frites_config_keys "$@" || __git_frites_gits_config_variable_name "$@"
	}
}

# Offers the keys that begin with the word, if these are our own. The arguments are those of git's function.
__git_frites_config_keys ()
{
	local arg sfx=' ' cur_=$cur
	for arg; do
		case $arg in
		--cur=*) cur_=${arg#--cur=} ;;
		--sfx=*) sfx=${arg#--sfx=} ;;
		esac
	done
	if [[ $cur_ == frites.* ]]; then
		__gitcomp_nl "$(FRITES_COMPLETE=bash _CLAP_COMPLETE_INDEX=2 _CLAP_IFS=$'\n' \
			git-frites -- git-frites config "${cur_#frites.}" 2>/dev/null)" frites. "${cur_#frites.}" "$sfx"
	elif [[ frites == "$cur_"* ]]; then
		__git_frites_gits_config_variable_name "$@"
		__gitcomp_nl_append frites. '' "$cur_" ''
	else
		return 1
	fi
}

# Called by git's completion, which knows the position of the command and the words before it.
_git_frites ()
{
	__git_frites_extend_config
	local i git=(git) verb=${words[__git_cmd_idx]}
	((${#__git_C_args[@]})) && git+=("${__git_C_args[@]}")
	[[ -z ${__git_dir-} ]] || git+=("--git-dir=$__git_dir")
	local words cword
	__git_frites_words
	# git's words are cut at `@`, ours are not; an alias is not on the line.
	for ((i = __git_cmd_idx; i > 0; i--)); do
		[[ ${words[i]-} != "$verb" ]] || break
	done
	((i)) || i=$__git_cmd_idx
	words=("${words[@]:i}") cword=$((cword - i))
	__git_frites_complete "${git[@]}" frites
}

__git_frites_alone ()
{
	local words cword
	__git_frites_words
	__git_frites_complete git-frites
}

complete -o nospace -F __git_frites_alone git-frites
__git_frites_extend_config
