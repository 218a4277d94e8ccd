package io.github.idnode;

import java.util.Map;

// What a node is asked, in which trace, null for none, of which cluster it must be, empty for any, and whether the leader decides it.
record Query(String method, Map<String, ?> fields, String traceparent, String cluster, boolean toLeader) {}
