package io.github.idnode;

// What a node is asked, as JSON, in which trace, null for none, of which cluster it must be, empty for any, and whether the leader decides it.
record Query(String method, String body, String traceparent, String cluster, boolean toLeader) {}
