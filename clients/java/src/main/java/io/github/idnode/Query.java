package io.github.idnode;

import java.util.Map;

// What a node is asked, and in which trace: null for none.
record Query(String method, Map<String, ?> fields, String traceparent) {}
