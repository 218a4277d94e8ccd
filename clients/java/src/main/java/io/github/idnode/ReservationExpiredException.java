package io.github.idnode;

/** The number's time ended, and another document has it. */
public final class ReservationExpiredException extends IdnodeException { ReservationExpiredException(Problem p) { super(p); } }
