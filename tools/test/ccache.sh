# How the compiler cache is used by ./run and its stages. Sourced from the project's folder.
#
# Paths below this folder are made relative, so what one checkout compiled serves all others. Depend
# mode: a file that is not in the cache is read once, not twice. Nothing is kept of a file that
# changed while it was compiled (no sloppiness with times): the object would be that of the file
# before, and serve whoever has the one after.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1

# cache_counts: how many compilations the cache has served and has not, on this machine.
cache_counts() {
  ccache --print-stats 2>/dev/null | awk '
    /^(direct|preprocessed)_cache_hit/ { hits += $2 }
    /^cache_miss/ { misses = $2 }
    END { print hits + 0, misses + 0 }'
}

# show_cache HITS MISSES: those of cache_counts since then.
show_cache() {
  local before=($1) now=($(cache_counts)) hits all
  hits=$((now[0] - before[0]))
  all=$((hits + now[1] - before[1]))
  [ $all = 0 ] || echo "compiler cache: $hits of $all compilations ($((hits * 100 / all)) %)"
}
