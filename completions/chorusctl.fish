complete --keep-order --exclusive --command chorusctl --arguments "(CHORUSCTL_COMPLETE=fish chorusctl -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
