import io.github.idnode.IdnodeClient;
import io.github.idnode.IdnodeConfig;
import io.github.idnode.jpa.IdnodeId;
import io.github.idnode.jpa.IdnodeListener;
import java.util.List;
import javax.persistence.Entity;
import javax.persistence.EntityListeners;
import javax.persistence.Id;
import javax.persistence.Persistence;

/** Has two persistence units, each with a client of its own. */
public class Units {
  @Entity
  @EntityListeners(IdnodeListener.class)
  public static class Order {
    @Id @IdnodeId(identity = "numbers") long id;
  }

  @Entity
  @EntityListeners(IdnodeListener.class)
  public static class Bill {
    @Id @IdnodeId(identity = "numbers") long id;
  }

  /** Of no unit. */
  public static class Note {
    @IdnodeId(identity = "numbers") long id;
  }

  public static void main(String[] nodes) {
    try (var one = client(nodes, "one"); var two = client(nodes, "two"); var three = client(nodes, "three")) {
      var orders = Persistence.createEntityManagerFactory("orders");
      var bills = Persistence.createEntityManagerFactory("bills");
      IdnodeListener.use(one, orders);
      var order = stored(new Order());
      refused(new Note());
      IdnodeListener.use(two, bills);
      IdnodeListener.use(three);
      System.out.println(order.id + " " + stored(new Order()).id + " " + stored(new Order() {}).id); // The last as a provider's proxy.
      System.out.println(stored(new Bill()).id + " " + stored(new Note() {}).id);
      var again = Persistence.createEntityManagerFactory("orders");
      IdnodeListener.use(one, again);
      try {
        IdnodeListener.use(two, orders);
      } catch (IllegalStateException e) {
        System.out.println(e.getMessage());
      }
      System.out.println(stored(new Order()).id);
      again.close();
      System.out.println(stored(new Order()).id); // The other one is open.
      orders.close();
      System.out.println(stored(new Order()).id + " " + stored(new Order()).id);
      IdnodeListener.use(two, Persistence.createEntityManagerFactory("orders"));
      System.out.println(stored(new Order()).id);
    }
  }

  private static IdnodeClient client(String[] nodes, String database) { return new IdnodeClient(List.of(nodes), new IdnodeConfig().withDatabase(database)); }

  private static <T> T stored(T entity) {
    new IdnodeListener().fill(entity);
    return entity;
  }

  private static void refused(Object entity) {
    try {
      stored(entity);
    } catch (IllegalStateException e) {
      System.out.println(e.getMessage());
    }
  }
}
