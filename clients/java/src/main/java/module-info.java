/** A client of idnode, which hands out ids that are unique across a cluster. */
module io.github.idnode {
  exports io.github.idnode;
}
