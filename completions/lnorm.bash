# Completion of lnorm for bash. Written by tools/completions.py; do not edit.

# The words that begin like the current one.
_lnorm_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Files of the given extensions, and directories.
_lnorm_files() {
    local extension
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        for extension in "$@"; do compgen -f -X "!*.$extension" -- "$cur"; done
        compgen -d -- "$cur"
    )
}

# The norms of the model that the command line names.
_lnorm_norms() {
    local i model=
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --model | -m)
            model=${COMP_WORDS[i + 1]}
            [[ $model == = ]] && model=${COMP_WORDS[i + 2]}
            ;;
        esac
    done
    [[ $model ]] && _lnorm_words "$("${COMP_WORDS[0]}" list "$model" 2>/dev/null | cut -d ' ' -f 1)"
}

_lnorm() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _lnorm_words "apply grad verify explain list info bench --help --version"
        return
    fi
    # --name=value comes as three words
    if [[ $cur == = ]]; then
        cur=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $before in
    --output | -o | --mean | --rstd | --dx | --dweight | --dbias)
        _lnorm_files npy
        return
        ;;
    --op)
        _lnorm_words "layer rms group instance batch"
        return
        ;;
    --normalized-shape | -s | --axes | -a | --groups | -g | --eps | -e | --threads | --max-ulp | -u | --seconds)
        return
        ;;
    --weight | -w | --bias | -b | --running-mean | --running-var)
        _lnorm_files npy safetensors
        return
        ;;
    --model | -m)
        _lnorm_files safetensors
        return
        ;;
    --name | -n)
        _lnorm_norms
        return
        ;;
    --dtype | -t)
        _lnorm_words "f64 f32 f16 bf16"
        return
        ;;
    --svg)
        _lnorm_files svg
        return
        ;;
    esac
    case ${COMP_WORDS[1]}:$cur in
    apply:-*) _lnorm_words "--output -o --op --normalized-shape -s --axes -a --groups -g --eps -e --weight -w --bias -b --weight-offset --model -m --name -n --running-mean --running-var --dtype -t --mean --rstd --bf16 --threads --quiet -q --help -h" ;;
    grad:-*) _lnorm_words "--dx --dweight --dbias --op --normalized-shape -s --axes -a --groups -g --eps -e --weight -w --weight-offset --model -m --name -n --running-mean --running-var --dtype -t --bf16 --threads --quiet -q --help -h" ;;
    verify:-*) _lnorm_words "--op --normalized-shape -s --axes -a --groups -g --eps -e --weight -w --bias -b --weight-offset --model -m --name -n --running-mean --running-var --max-ulp -u --json --bf16 --quiet -q --help -h" ;;
    explain:-*) _lnorm_words "--op --normalized-shape -s --axes -a --groups -g --eps -e --svg --bf16 --help -h" ;;
    list:-*) _lnorm_words "--all --help -h" ;;
    info:-*) _lnorm_words "--help -h" ;;
    bench:-*) _lnorm_words "--op --normalized-shape -s --axes -a --groups -g --eps -e --dtype -t --threads --seconds --help -h" ;;
    apply:*) _lnorm_files npy safetensors ;;
    grad:*) _lnorm_files npy safetensors ;;
    explain:*) _lnorm_files npy safetensors ;;
    list:*) _lnorm_files safetensors ;;
    esac
}

complete -F _lnorm lnorm
