#!/usr/bin/env bash
# Fills corpus/ with seeds: those of seeds/, and others made of the golden cases; and words.dict
# with the names that occur in them. What the fuzzer found in earlier runs stays. `corpus.sh` from
# any folder; quick.
set -euo pipefail
cd "$(dirname "$0")"
golden=../golden

# The number of a format, as WireFormat::ALL has them.
number() {
  case $1 in native) echo 0 ;; responses) echo 1 ;; chat-compatible) echo 2 ;; alt-cli) echo 3 ;; *) return 1 ;; esac
}

# letter <number>: it, counted from @.
letter() { printf "\\$(printf '%03o' $((64 + $1)))"; }

# seed <target> <name> <pair> <flags> <cut> <file>
seed() {
  { letter "$3"; letter "$4"; letter "$5"; cat "$6"; } >"corpus/$1/$2"
}

mkdir -p corpus/{request,reply,stream,peek,usage,sse}
cp -R seeds/. corpus/
count=0
for file in "$golden"/*/*.* "$golden"/*/expected/*.*; do
  IFS=. read -r kind from _ to _ <<<"$(basename "$file")"
  # A file under expected/ is in the format it was converted to.
  format=$(number "${to:-$from}") || format=$(number "$from")
  count=$((count + 1))
  case $file in */expected/*) targets=$((count % 4)) ;; *) targets='0 1 2 3' ;; esac
  for to in $targets; do
    pair=$((format + 4 * to)) name=golden-$count-$to flags=$((count % 32)) cut=$((count % 60))
    case $kind in
      request) seed request "$name" $pair $flags 0 "$file" ;;
      reply) seed reply "$name" $pair $((count % 16)) 0 "$file" ;;
      stream) seed stream "$name" $pair $((count % 16)) $cut "$file" ;;
    esac
  done
  case $kind in
    request) seed peek "golden-$count" 0 0 $cut "$file" ;;
    reply) seed usage "golden-$count" "$format" $((count % 2)) $cut "$file" ;;
    stream) seed usage "golden-$count" "$format" 0 $cut "$file" && seed sse "golden-$count" 0 0 $cut "$file" ;;
  esac
done
# Names of members and short words: the fuzzer would not guess them.
grep -rohE '"[A-Za-z_][A-Za-z0-9_.-]{1,31}"' "$golden" | sort -u | sed 's/"\(.*\)"/"\\"\1\\""/' >words.dict
# Administration bodies: the examples of the API's document, and the names of its fields.
mkdir -p corpus/bodies
grep -oE '"example": \{[^{}]*\}' <(tr -d '\n' <../admin/openapi.json) | sed 's/^"example": //' | sort -u | head -300 |
  while IFS= read -r body; do printf '%s' "$body" >"corpus/bodies/$(printf '%s' "$body" | cksum | cut -d' ' -f1)"; done
grep -ohE '"[A-Za-z_][A-Za-z0-9_.-]{1,31}":' ../admin/openapi.json | sort -u | sed 's/"\(.*\)":/"\"\1\""/' >>words.dict
echo "$(find corpus -type f | wc -l) seeds, $(wc -l <words.dict) words" >&2
