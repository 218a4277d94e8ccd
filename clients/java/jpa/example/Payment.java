import io.github.idnode.jpa.IdnodeId;
import io.github.idnode.jpa.IdnodeListener;
import javax.persistence.Entity;
import javax.persistence.EntityListeners;
import javax.persistence.Id;

/** Gets a number as its id. */
@Entity
@EntityListeners(IdnodeListener.class)
public class Payment {
  @Id @IdnodeId(tag = "payments") Long id;
}
