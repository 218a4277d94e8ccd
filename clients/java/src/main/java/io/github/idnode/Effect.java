package io.github.idnode;

// What a failed try may have done.
enum Effect { NOTHING, UNKNOWN, REFUSED }
