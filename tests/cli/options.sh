# SPDX-License-Identifier: Apache-2.0
# Every option that a verb's help names is accepted by it, and those of other verbs are refused.
verbs=$(sonde --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for verb in $verbs; do
    # "  -n, --iterations N   measured runs": the letter, the name and what stands for a value.
    sonde "$verb" --help | sed -nE 's/^  (-.,|   ) (--[a-z-]+)(\[=[A-Z]+\]| [^ ]+)?( .*)?$/\1 \2\3/p' >"$verb"
done

for verb in $verbs; do
    words=()
    while IFS= read -r line; do
        letter=$(grep -oE '^-.' <<<"$line")
        name=$(grep -oE -- '--[a-z-]+' <<<"$line")
        case $line in
        *--help*) continue ;;
        *"[="*) words+=("$name" "$name=1") ;;
        *"$name "*) words+=("$name" 1 "$name=1" ${letter:+"$letter" 1 "${letter}1"}) ;;
        *) words+=("$name" ${letter:+"$letter"}) ;;
        esac
    done <"$verb"
    echo "$verb takes its $(wc -l <"$verb") options"
    sonde "$verb" "${words[@]}" | sed 's/[0-9.]*$/X/' # --version is one of them, and the last word
done

refused=0
for verb in $verbs; do
    for name in $(cat $verbs | grep -oE -- '--[a-z-]+' | sort -u); do
        grep -qE -- "$name( |\[|\$)" "$verb" && continue
        case $(sonde "$verb" "$name" 2>&1) in
        "sonde: unknown option '$name'"*) refused=$((refused + 1)) ;;
        *) echo "$verb takes $name, which its help does not name" ;;
        esac
    done
done
[ $refused -gt 400 ] && echo "options of other verbs are refused"
