import io.github.idnode.jpa.IdnodeId;
import io.github.idnode.jpa.IdnodeListener;
import javax.persistence.Entity;
import javax.persistence.EntityListeners;
import javax.persistence.Id;
import javax.persistence.Table;

/** Gets a text as its id, orders/1-A and so on. */
@Entity
@Table(name = "orders")
@EntityListeners(IdnodeListener.class)
public class Order {
  @Id @IdnodeId String id;
  String customer;

  protected Order() {}

  Order(String customer) { this.customer = customer; }
}
