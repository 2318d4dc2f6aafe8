# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ares_global_optspecs
    string join \n h/help V/version
end

function __fish_ares_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ares_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ares_using_subcommand
    set -l cmd (__fish_ares_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ares -n "__fish_ares_needs_command" -s h -l help -d 'Print help'
complete -c ares -n "__fish_ares_needs_command" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_needs_command" -f -a "demo" -d 'Show the main job at work in a throw-away store'
complete -c ares -n "__fish_ares_needs_command" -f -a "init" -d 'Make a store, or upgrade one'
complete -c ares -n "__fish_ares_needs_command" -f -a "submit" -d 'Queue one job, or many'
complete -c ares -n "__fish_ares_needs_command" -f -a "run" -d 'Run the next job, or all'
complete -c ares -n "__fish_ares_needs_command" -f -a "wait" -d 'Wait until jobs end'
complete -c ares -n "__fish_ares_needs_command" -f -a "stop" -d 'Stop jobs'
complete -c ares -n "__fish_ares_needs_command" -f -a "claim" -d 'Take the next job that may run'
complete -c ares -n "__fish_ares_needs_command" -f -a "settle" -d 'Record how an attempt ended'
complete -c ares -n "__fish_ares_needs_command" -f -a "list" -d 'List jobs'
complete -c ares -n "__fish_ares_needs_command" -f -a "show" -d 'Show one thing with all its evidence'
complete -c ares -n "__fish_ares_needs_command" -f -a "log" -d 'Show who changed what, and when'
complete -c ares -n "__fish_ares_needs_command" -f -a "reconcile" -d 'Find what crashes left, and mend or decide it'
complete -c ares -n "__fish_ares_needs_command" -f -a "fsck" -d 'Verify everything in a store'
complete -c ares -n "__fish_ares_needs_command" -f -a "backup" -d 'Copy a store while it is in use, or make a store of a copy'
complete -c ares -n "__fish_ares_needs_command" -f -a "gc" -d 'Remove finished jobs that are old, and give back what nothing needs'
complete -c ares -n "__fish_ares_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ares -n "__fish_ares_using_subcommand demo" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand demo" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand demo" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand demo" -l keep -d 'Keep the store, and print where it is'
complete -c ares -n "__fish_ares_using_subcommand demo" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand demo" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand demo" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand demo" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand init" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand init" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand init" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand init" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand init" -l upgrade -d 'Upgrade a store of an older version'
complete -c ares -n "__fish_ares_using_subcommand init" -l adopt -d 'Accept a store that was copied or unpacked here'
complete -c ares -n "__fish_ares_using_subcommand init" -l unsafe-fs -d 'Accept a file system whose locks cannot be trusted'
complete -c ares -n "__fish_ares_using_subcommand init" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand init" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand init" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand init" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand submit" -s w -l worker -d 'The worker that does it; default command' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -s m -l model -d 'The model to ask for; default the worker\'s own' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l file -d 'Read the prompt, or a command\'s standard input, from a file' -r -F
complete -c ares -n "__fish_ares_using_subcommand submit" -l dir -d 'Run it in this directory; default the current one' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand submit" -l env -d 'Pass this environment variable on to the worker' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l option -d 'Set an option of the worker\'s adapter' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l timeout -d 'Stop an attempt after this long; default the worker\'s own' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l timeout-first -d 'Stop an attempt that printed nothing for this long after its start; default the worker\'s own' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l timeout-idle -d 'Stop an attempt that prints nothing for this long; default the worker\'s own' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l grace -d 'Time between asking a worker to end (SIGTERM) and ending it (SIGKILL); default 10s' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l output-max -d 'Bound of each output stream in bytes, default 64M; k, M and G are powers of 1024' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l priority -d 'Higher runs first' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l not-before -d 'Do not start before this moment' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l after -d 'Wait for this job to succeed' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l after-failed -d 'What to do when one of them failed; default cancel' -r -f -a "hold\t''
cancel\t''
run\t''"
complete -c ares -n "__fish_ares_using_subcommand submit" -l after-cancelled -d 'What to do when one of them was cancelled; default cancel' -r -f -a "hold\t''
cancel\t''
run\t''"
complete -c ares -n "__fish_ares_using_subcommand submit" -l after-uncertain -d 'What to do while one of them is uncertain; default hold' -r -f -a "hold\t''
cancel\t''
run\t''"
complete -c ares -n "__fish_ares_using_subcommand submit" -l group -d 'Count it in this concurrency group' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l width -d 'How many of the group may run at once; default 1, or what config.toml says' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l label -d 'Add a label' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l max-tries -d 'How many tries it may have; default 1' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l retry-delay -d 'Wait before the second try, default 1s; doubled for each further one, an hour at most' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l if-uncertain -d 'What to do with an attempt that ends uncertain; default hold' -r -f -a "hold\t''
retry\t''
fail\t''"
complete -c ares -n "__fish_ares_using_subcommand submit" -l key -d 'Submit at most once under this key' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l if-active -d 'What to do while a job with this label has not ended: skip, queue, latest or fail' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l continue -d 'Continue the session of this job' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand submit" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand submit" -l no-capture -d 'Keep nothing of what the worker prints'
complete -c ares -n "__fish_ares_using_subcommand submit" -l stdin -d 'Queue one job for each record of standard input, all in one transaction'
complete -c ares -n "__fish_ares_using_subcommand submit" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand submit" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand submit" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand submit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand submit" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand run" -s j -l jobs -d 'Run this many at once, each in a process of its own' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l label -d 'Only jobs with this label' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l group -d 'Only jobs of this group' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l worker -d 'Only jobs of this worker' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l job -d 'Only this job' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l grace -d 'How long the running worker may go on after a signal' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand run" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand run" -l drain -d 'Go on until no job may run'
complete -c ares -n "__fish_ares_using_subcommand run" -l wait -d 'Go on for ever: wait when no job may run'
complete -c ares -n "__fish_ares_using_subcommand run" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand run" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand run" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand run" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand wait" -l timeout -d 'Wait at most this long; default for ever' -r
complete -c ares -n "__fish_ares_using_subcommand wait" -l label -d 'Wait for the jobs that have this label now' -r
complete -c ares -n "__fish_ares_using_subcommand wait" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand wait" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand wait" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand wait" -l any -d 'Wait for the first of them only'
complete -c ares -n "__fish_ares_using_subcommand wait" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand wait" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand wait" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand wait" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand wait" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand stop" -l label -d 'Stop the jobs that have this label now' -r
complete -c ares -n "__fish_ares_using_subcommand stop" -l because -d 'One line on why' -r
complete -c ares -n "__fish_ares_using_subcommand stop" -l decide -d 'What becomes of a stopped job of which nobody can tell what it did' -r -f -a "abandon\t''
hold\t''
ok\t''
error\t''"
complete -c ares -n "__fish_ares_using_subcommand stop" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand stop" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand stop" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand stop" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand stop" -l hard -d 'End running workers at once, without grace'
complete -c ares -n "__fish_ares_using_subcommand stop" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand stop" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand stop" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand stop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand stop" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand claim" -l owner-fd -d 'Own the claim through this descriptor of an owner file' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l owner -d 'Own the claim through this process, such as $$' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l label -d 'Only jobs with this label' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l group -d 'Only jobs of this group' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l worker -d 'Only jobs of this worker' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l job -d 'Only this job' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l report -d 'Write to this file, as JSON, whether ares itself failed' -r -F
complete -c ares -n "__fish_ares_using_subcommand claim" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand claim" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand claim" -l owner-file -d 'Print the path of a fresh owner file, and claim nothing'
complete -c ares -n "__fish_ares_using_subcommand claim" -l reserve -d 'Only claim: the job is kept from others, and nothing is dispatched'
complete -c ares -n "__fish_ares_using_subcommand claim" -l capture -d 'Store the command\'s output with the attempt instead of passing it on'
complete -c ares -n "__fish_ares_using_subcommand claim" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand claim" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand claim" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand claim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand claim" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand settle" -l result -d 'Read the result from a file; - is standard input' -r -F
complete -c ares -n "__fish_ares_using_subcommand settle" -l code -d 'The code of the end, such as ARES_RATE_LIMITED' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l because -d 'One line on why' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l exit -d 'The exit status that was seen' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l usage -d 'Tokens used: JSON, or pairs such as input=1200,output=80' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l cost -d 'What it cost, in USD with nine decimals at most' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand settle" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand settle" -l lasting -d 'Of a void attempt: trying again would end the same way'
complete -c ares -n "__fish_ares_using_subcommand settle" -l retry -d 'Of an error: it is worth another try, if tries are left'
complete -c ares -n "__fish_ares_using_subcommand settle" -l no-retry -d 'Of an error: it is not worth another try; the default'
complete -c ares -n "__fish_ares_using_subcommand settle" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand settle" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand settle" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand settle" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand settle" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand list" -l state -d 'Only jobs in this state' -r -f -a "queued\t''
claimed\t''
running\t''
uncertain\t''
succeeded\t''
failed\t''
cancelled\t''"
complete -c ares -n "__fish_ares_using_subcommand list" -l label -d 'Only jobs with this label' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l worker -d 'Only jobs of this worker' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l group -d 'Only jobs of this group' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l since -d 'Only jobs submitted at this moment or later' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l until -d 'Only jobs submitted before this moment' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l sort -d 'The order; -id is the latest first' -r -f -a "id\t''
-id\t''
ended\t''
-ended\t''
priority\t''"
complete -c ares -n "__fish_ares_using_subcommand list" -l limit -d 'Print at most this many' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l after -d 'Begin after this job, in the order asked for' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand list" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand list" -l count -d 'Print only how many there are'
complete -c ares -n "__fish_ares_using_subcommand list" -l all -d 'Print all, however many there are, also on a terminal'
complete -c ares -n "__fish_ares_using_subcommand list" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand list" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand list" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand list" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand show" -l output -d 'Print this part of it' -r -f -a "stdout\t''
stderr\t''
result\t''
prompt\t''
events\t''"
complete -c ares -n "__fish_ares_using_subcommand show" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand show" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand show" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand show" -l follow -d 'Print what the worker prints, until its attempt ends'
complete -c ares -n "__fish_ares_using_subcommand show" -l raw -d 'Escape nothing, also on a terminal'
complete -c ares -n "__fish_ares_using_subcommand show" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand show" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand show" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand show" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand log" -l since -d 'Only operations at this moment or later' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l until -d 'Only operations before this moment' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l verb -d 'Only operations of this command, such as submit' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l limit -d 'Print the latest so many' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l subject -d 'Only operations on this thing, such as 42 or 42.1' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand log" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand log" -l all -d 'Print all, however many there are, also on a terminal'
complete -c ares -n "__fish_ares_using_subcommand log" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand log" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand log" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand log" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l decide -d 'Decide the job, which must be uncertain, or held for retry and no-effect' -r -f -a "ok\t''
error\t''
no-effect\t''
retry\t''
abandon\t''"
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l because -d 'One line on why; it is kept with the decision' -r
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l seen -d 'Decide only on this evidence: refuse when it has changed since' -r
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l dry-run -d 'Show what would be done, and change nothing'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l adopt -d 'Wait for what is left of the attempt to end, then decide as the evidence proposes'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l stop-survivors -d 'End what is left of the attempt first; each process is identified before it gets a signal'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand reconcile" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand fsck" -l exported -d 'Check these files of exported receipts too' -r -F
complete -c ares -n "__fish_ares_using_subcommand fsck" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand fsck" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand fsck" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand fsck" -l full -d 'Have every page and every index entry looked at; slower'
complete -c ares -n "__fish_ares_using_subcommand fsck" -l repair -d 'First put right what cannot lose anything: leftovers and modes'
complete -c ares -n "__fish_ares_using_subcommand fsck" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand fsck" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand fsck" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand fsck" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand fsck" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand backup" -l restore -d 'Make a store of this copy instead' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand backup" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand backup" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand backup" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand backup" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand backup" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand backup" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand backup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand backup" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand gc" -l older-than -d 'Remove only jobs that ended longer ago than this' -r
complete -c ares -n "__fish_ares_using_subcommand gc" -l keep -d 'Remove only jobs beyond the N that ended last' -r
complete -c ares -n "__fish_ares_using_subcommand gc" -l export -d 'Write receipts of jobs that are gone here, and remove them' -r -F
complete -c ares -n "__fish_ares_using_subcommand gc" -l op-id -d 'Apply this at most once under this id' -r
complete -c ares -n "__fish_ares_using_subcommand gc" -l store -d 'Use the store in this directory' -r -f -a "(__fish_complete_directories)"
complete -c ares -n "__fish_ares_using_subcommand gc" -l wait-lock -d 'Wait at most this long for the store' -r
complete -c ares -n "__fish_ares_using_subcommand gc" -l format -d 'Print each record in this format' -r
complete -c ares -n "__fish_ares_using_subcommand gc" -l dry-run -d 'Print what would go, and change nothing'
complete -c ares -n "__fish_ares_using_subcommand gc" -l json -d 'Print one JSON object per line, with all fields'
complete -c ares -n "__fish_ares_using_subcommand gc" -s z -l null -d 'End records with NUL and escape nothing'
complete -c ares -n "__fish_ares_using_subcommand gc" -s q -l quiet -d 'Print no notes and no plain no'
complete -c ares -n "__fish_ares_using_subcommand gc" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ares -n "__fish_ares_using_subcommand gc" -s V -l version -d 'Print version'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "demo" -d 'Show the main job at work in a throw-away store'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "init" -d 'Make a store, or upgrade one'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "submit" -d 'Queue one job, or many'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "run" -d 'Run the next job, or all'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "wait" -d 'Wait until jobs end'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "stop" -d 'Stop jobs'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "claim" -d 'Take the next job that may run'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "settle" -d 'Record how an attempt ended'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "list" -d 'List jobs'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "show" -d 'Show one thing with all its evidence'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "log" -d 'Show who changed what, and when'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "reconcile" -d 'Find what crashes left, and mend or decide it'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "fsck" -d 'Verify everything in a store'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "backup" -d 'Copy a store while it is in use, or make a store of a copy'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "gc" -d 'Remove finished jobs that are old, and give back what nothing needs'
complete -c ares -n "__fish_ares_using_subcommand help; and not __fish_seen_subcommand_from demo init submit run wait stop claim settle list show log reconcile fsck backup gc help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'

# ares-NAME is completed as ares NAME.
complete -c ares-demo -w 'ares demo'
complete -c ares-init -w 'ares init'
complete -c ares-submit -w 'ares submit'
complete -c ares-run -w 'ares run'
complete -c ares-wait -w 'ares wait'
complete -c ares-stop -w 'ares stop'
complete -c ares-claim -w 'ares claim'
complete -c ares-settle -w 'ares settle'
complete -c ares-list -w 'ares list'
complete -c ares-show -w 'ares show'
complete -c ares-log -w 'ares log'
complete -c ares-reconcile -w 'ares reconcile'
complete -c ares-fsck -w 'ares fsck'
complete -c ares-backup -w 'ares backup'
complete -c ares-gc -w 'ares gc'
