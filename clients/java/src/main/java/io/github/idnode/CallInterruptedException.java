package io.github.idnode;

/** The thread was interrupted; its interrupt flag is set. {@link #outcomeUnknown} says whether a try may have taken effect. */
public final class CallInterruptedException extends IdnodeException { CallInterruptedException(Problem p) { super(p); } }
