#!/bin/sh
# Index this repository's docs and ask three questions of different kinds, in a knowledge base of its own.
set -eu
kb=$1
KB_HOME=${KB_HOME:-$(dirname "$kb")/../demo}
KB_ENGINE_START=never # nothing stays after a demonstration
export KB_HOME KB_ENGINE_START

ask() {
    printf "\n$ kb search '%s' %s\n\n" "$1" "$2 $3"
    "$kb" search "$@" || [ $? -eq 1 ]
}

printf '$ kb add docs\n'
"$kb" add docs
ask 'how does a sync notice that a file changed' --top 3  # a question: meaning leads
ask '"the old version or the new one"' --top 2    # a phrase: exactly these words
ask KB_SEARCH_DEFAULT_TOP --top 2                 # an identifier: words lead
