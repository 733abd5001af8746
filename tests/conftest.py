import signal

# A run in the background (`make test &`) is told to ignore SIGINT, and would hand that on to the programs that tests
# interrupt: they would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
