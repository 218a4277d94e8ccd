import io.github.idnode.IdnodeClient;
import io.github.idnode.jpa.IdnodeListener;
import java.util.List;
import javax.persistence.Persistence;

/** Stores orders and a payment, with ids of the nodes that its arguments name, and prints what the database has. */
public class Shop {
  public static void main(String[] nodes) {
    try (var ids = new IdnodeClient(List.of(nodes))) {
      IdnodeListener.use(ids);
      var factory = Persistence.createEntityManagerFactory("shop");
      var store = factory.createEntityManager();
      store.getTransaction().begin();
      for (var customer : List.of("Ada", "Bob")) store.persist(new Order(customer));
      store.persist(new Payment());
      store.getTransaction().commit();
      store.clear();
      store.createQuery("select o from Order o order by o.id", Order.class).getResultList()
          .forEach(order -> System.out.println(order.id + " " + order.customer));
      System.out.println(store.createQuery("select p.id from Payment p", Long.class).getResultList());
      factory.close();
    }
  }
}
