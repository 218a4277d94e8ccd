// TypeScript before 5.2 does not know these; the declarations are those of its lib esnext.disposable.
declare global {
  interface SymbolConstructor {
    readonly asyncDispose: unique symbol;
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): PromiseLike<void>;
  }
}

/** Makes a call count once, however often it is made. It is plain data: JSON keeps it. */
export interface RequestId {
  /** 1 to 64 bytes, unique per database and principal. */
  id: string;
  /** The log index that was known before the first try, in decimal digits. */
  since?: string | bigint;
}

/** Why a call failed. The subclasses tell the cases apart that a program can act on. */
export class IdnodeError extends Error {
  /** The gRPC status code in lower case, for example "unavailable". */
  code: string;
  /** The API's name of the cause, for example "ID_CLAIMED"; may be empty. */
  reason: string;
  /** The field of the request that is at fault; empty if there is none. */
  field: string;
  /** The same call with this request id counts once; undefined if the call had none. */
  requestId?: RequestId;
  /** In how many milliseconds the node will take the call, if it says so: of a RateLimitedError or an OverloadedError. */
  retryAfter?: number;
  /** Those that nextIds had taken before it failed: text of a HiLo, BigInts of a Snowflake. */
  ids: (string | bigint)[];
  /** What failed below, for example an error of a socket; the signal's reason of an AbortError. */
  readonly cause?: unknown;
  constructor(message: string, details?: Partial<Omit<IdnodeError, keyof Error | "toJSON">> & { cause?: unknown });
  /** The fields above without the cause, with name and message. */
  toJSON(): Record<string, unknown>;
}
/** A try of the call may have taken effect. */
export class OutcomeUnknownError extends IdnodeError {}
/** The cluster has no leader, or no majority. Nothing happened. */
export class NoQuorumError extends IdnodeError {}
/** No node could be reached. Nothing happened. */
export class NoEndpointError extends IdnodeError {}
/** The time was over before an answer, a range or a lease came. Nothing happened. */
export class DeadlineError extends IdnodeError {}
/** The nodes that answer are of another cluster than the client, or the endpoints are of two. Nothing happened. */
export class OtherClusterError extends IdnodeError {}
/** There are too many calls. Nothing happened. */
export class OverloadedError extends IdnodeError {}
/** A disk of the cluster is nearly full. Nothing happened. */
export class StorageFullError extends IdnodeError {}
/** A limit on names, claims or sizes is reached. Nothing happened. */
export class QuotaError extends IdnodeError {}
/** The caller has reached a limit of its own. Nothing happened. */
export class RateLimitedError extends IdnodeError {}
/** The counter has no numbers left. */
export class ExhaustedError extends IdnodeError {}
/** An expected value is not the current one. */
export class ConcurrencyError extends IdnodeError {}
/** The id is claimed, or was issued by an identity. */
export class IdClaimedError extends IdnodeError {}
/** The document's key has a number of another date or scope. */
export class KeyConflictError extends IdnodeError {}
/** The series was restored, and gives no numbers until somebody has looked into the books. */
export class SeriesSuspendedError extends IdnodeError {}
/** The number's time ended, and another document has it. */
export class ReservationExpiredError extends IdnodeError {}
/** The request id was used for another request. */
export class RequestIdReusedError extends IdnodeError {}
/** The cluster no longer knows whether the first try of the call happened. */
export class RequestIdExpiredError extends IdnodeError {}
/** The caller's certificate has no right to it. Nothing happened. */
export class PermissionDeniedError extends IdnodeError {}
/** There is no such identity, counter or claim. */
export class NotFoundError extends IdnodeError {}
/** The request is wrong: field says where, reason why. */
export class InvalidError extends IdnodeError {}
/** The client or the handle was closed. */
export class ClosedError extends IdnodeError {}
/**
 * The caller's signal ended the call: code is "canceled", cause the signal's reason. If reason is "OUTCOME_UNKNOWN", a try may
 * have taken effect: the same call with requestId counts once. Otherwise reason is "CANCELED", and nothing happened.
 */
export class AbortError extends IdnodeError {}

/** What the client needs of an AbortSignal. */
export interface Signal {
  readonly aborted: boolean;
  readonly reason?: any;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
type Pem = string | Uint8Array;
/**
 * Options of Node's tls.connect. A string without PEM in it, as ca, cert or key or in a list of these, is the name of a file. New connections use what the
 * files have then, read again at most once a second. Files that cannot be read, are no whole PEM, or do not fit, are a warning of
 * Node's, and what was read before goes on; the constructor throws.
 */
export interface TlsOptions {
  /** Whom to trust; by default the authorities that Node knows. */
  ca?: Pem | Pem[];
  /** The client's certificate and its key. */
  cert?: Pem | Pem[];
  key?: Pem | (Pem | { pem: Pem; passphrase?: string })[];
  pfx?: Pem | (Pem | { buf: Pem; passphrase?: string })[];
  passphrase?: string;
  /** The name that the nodes' certificates have, if it is not the endpoint's. */
  servername?: string;
  minVersion?: "TLSv1.2" | "TLSv1.3" | "TLSv1.1" | "TLSv1";
  ciphers?: string;
  rejectUnauthorized?: boolean;
}

export interface ClientOptions {
  /** Whose ids are given; empty means "default". */
  database?: string;
  tls?: TlsOptions;
  /** Bounds every call with all its tries, in milliseconds below 2^31; 10,000 by default. */
  timeout?: number;
  /** Kept with each HiLo range and Snowflake worker, for people who ask whose it is; at most 64 bytes. Empty means the names of host and program. */
  label?: string;
  /** Bounds one try at one node, in milliseconds below 2^31; 3,000 by default. */
  tryTimeout?: number;
  /**
   * Connections to one node at most, 1 to 1,024; 128 by default. Calls beyond wait, and are an OverloadedError if none comes free in
   * time. A quarter is kept for server-side ids and stale reads, which a node answers by itself. Beside a single one, there is one
   * for questions after the node's status.
   */
  maxConnections?: number;
  /**
   * The cluster's, as `idnode cluster status` shows it: nodes of another one get no call. By default it is the one that the
   * endpoints tell, which must be the same at all that answer before the first call.
   */
  clusterId?: string;
  /**
   * After this time without an answer of any node, in milliseconds below 2^31, calls fail at once with a NoEndpointError, until a node
   * answers; one call a second is let through to try. A call whose outcome was unknown stays an OutcomeUnknownError. Five seconds
   * without a try end it. By default calls always try.
   */
  failFastAfter?: number;
  /** Hears what this client does. It is called in between, and should be quick. What it throws, now or later, is a warning of Node's. */
  observe?: (event: Event) => void;
}
/** Something that a client did for its calls. */
export interface Event {
  /**
   * "try": a try of a call ended; callers that share a call share its tries. "look": a look for the leader ended. "leader": calls now
   * go to another leader. "gap": unused numbers of a HiLo range came back after another client had got a range of the tag, and are a
   * gap. Others may come.
   */
  kind: "try" | "look" | "leader" | "gap" | (string & {});
  /** The address of the try's node, or of the leader if a look found one. */
  node?: string;
  /** Which try of the call it was, from 1. */
  attempt?: number;
  /** How long the try or the look took, in milliseconds. */
  duration?: number;
  /** Why the try failed. */
  err?: IdnodeError;
}

/** How long a caller waits. */
export interface BoundedOptions {
  /** Ends the call at once with an AbortError. */
  signal?: Signal;
  /** Bounds this call instead of the client's timeout, in milliseconds below 2^31. */
  timeout?: number;
}
/** What every call takes. */
export interface CallOptions extends BoundedOptions {
  /** Instead of the client's. */
  database?: string;
  /** Makes the nodes' spans children of the caller's (W3C Trace Context). */
  traceparent?: string;
}
/** What a call takes that counts once. */
export interface CountedOptions extends CallOptions {
  /** The caller's own, or that of an error: the same call with it counts once. */
  requestId?: string | RequestId;
}
export interface SeparatedOptions {
  /** Between the parts of an id; "/" by default. */
  separator?: string;
}
export interface ReadOptions extends CallOptions {
  /** Reads what the node asked has, which needs no quorum. */
  stale?: boolean;
}
/** Of Identity.next and nextN. */
export interface ValueOptions extends CountedOptions, SeparatedOptions {}
export interface ClaimOptions extends CountedOptions, SeparatedOptions {}
export interface NextOptions extends CountedOptions, SeparatedOptions {
  /** Records the id in the cluster as taken; for finished ids only. */
  claim?: boolean;
}
export interface SeedOptions extends CountedOptions {
  /** Sets exactly the value, also a lower one: values may then come twice. */
  force?: boolean;
  /** Only if this is the current value; otherwise a ConcurrencyError. */
  expected?: bigint;
}
export interface DeleteOptions extends CountedOptions {
  /** Starts at 1 again: values come twice. */
  forget?: boolean;
}
export interface HiLoOptions extends SeparatedOptions {
  /** Instead of the client's. */
  database?: string;
  /** How many numbers the first range has, 1 to 1,048,576; by default the cluster says. */
  firstSize?: number;
}
export interface SnowflakeOptions {
  /** Instead of the client's. */
  database?: string;
}
export interface IdForOptions extends BoundedOptions {
  /** Instead of the client's. */
  database?: string;
}
/** What calls return: JSON has no BigInts, and gets them as text. */
export interface Answer {
  toJSON(): Record<string, unknown>;
}
/** Consecutive values of an identity, both ends included. */
export interface ValueBlock extends Answer {
  first: bigint;
  last: bigint;
}
export interface Counter extends Answer {
  name: string;
  value: bigint;
}
export interface HiLoNumber extends Answer {
  value: bigint;
  nodeTag: string;
  /** The number's id, for example "users/65-A". */
  id: string;
}

/** Calls an idnode cluster. Make one and share it; close it, so that unused numbers are given back. */
export class Client implements AsyncDisposable {
  /**
   * Makes no call yet. The endpoints are HTTP addresses of nodes of one cluster: host:port, or URLs of that. The client learns the
   * addresses of the other voters from the cluster.
   */
  constructor(endpoints: string[], options?: ClientOptions);
  /**
   * A client of what the environment names: IDNODE_HTTP_ENDPOINTS (with commas between), IDNODE_TLS_CA, IDNODE_TLS_CERT and
   * IDNODE_TLS_KEY (files), IDNODE_TLS_SERVER_NAME, IDNODE_CLUSTER_ID and IDNODE_DATABASE. Options go before them. A TypeError if
   * there is no endpoint.
   */
  static fromEnv(options?: ClientOptions): Client;
  /**
   * A client of a URL of HTTP addresses:
   * idnode+http://HOST:PORT,HOST:PORT/DATABASE?tls-ca=FILE&tls-cert=FILE&tls-key=FILE&tls-server-name=NAME&cluster-id=ID,
   * or tls=true for TLS with the authorities that Node knows. Options go before it. A TypeError names what is wrong.
   */
  static fromUrl(url: string, options?: ClientOptions): Client;
  /** Replaces the endpoints. Tries at nodes that are no longer among them go on to their end. */
  setEndpoints(endpoints: string[]): void;
  /** An id: "users/" a server-side id, "users|" an identity, empty a GUID, else the id itself. */
  next(template: string, options?: NextOptions): Promise<string>;
  /** n ids, 1 to 1,000,000, in one call. A requestId is for identities and claims alone; else it is an InvalidError. */
  nextN(template: string, n: number, options?: NextOptions): Promise<string[]>;
  /** The identity with this name. It exists once a value was taken. */
  identity(name: string): Identity;
  /** The identities whose folded names begin with prefix, in order. */
  identities(prefix?: string, options?: ReadOptions): AsyncGenerator<Counter, void, undefined>;
  /** The series of document numbers with this name. "idnode series define" defines it. */
  series(name: string): Series;
  /** Records a finished id as the caller's. The first claim wins; others get an IdClaimedError. */
  claim(id: string, options?: ClaimOptions): Promise<void>;
  /** Gives a claimed id free. */
  release(id: string, options?: CountedOptions): Promise<void>;
  /** The claimed ids that begin with prefix, folded, in order. */
  claims(prefix?: string, options?: ReadOptions): AsyncGenerator<string, void, undefined>;
  /** The handle of a collection's tag, which is made once and shared from then on. */
  hilo(tag: string, options?: HiLoOptions): HiLo;
  /** The next HiLo id for documents of a class, by its name: OrderLine → OrderLines/1-A. */
  idFor(type: { readonly name: string }, options?: IdForOptions): Promise<string>;
  /** The handle of a pool's Snowflake ids, which is made once and shared. "idnode snowflake define" defines the pool. */
  snowflake(pool: string, options?: SnowflakeOptions): Snowflake;
  /** Gives the unused numbers and the workers of all handles back, within the timeout. */
  close(): Promise<void>;
  /** close, for "await using". */
  [Symbol.asyncDispose](): Promise<void>;
  /** The endpoints, the leader and whether it is closed. */
  toString(): string;
}

/** A counter agreed by the cluster: it gives 1, 2, 3 … without holes. Made by Client.identity. */
export interface Identity {
  /** Takes the next value. */
  next(options?: ValueOptions): Promise<bigint>;
  /** Takes the next n values: one block, or several where claimed ids lie between. */
  nextN(n: number, options?: ValueOptions): Promise<ValueBlock[]>;
  /** The last value taken. */
  get(options?: ReadOptions): Promise<bigint>;
  /** Raises the last value taken, and returns what it is now. */
  seed(value: bigint, options?: SeedOptions): Promise<bigint>;
  /** Hides the identity and returns its last value. With forget it starts at 1 again, and values come twice. */
  delete(options?: DeleteOptions): Promise<bigint>;
}

/** A document's key and number, as a DocumentNumber has them. */
export interface Numbered {
  key: string;
  number: bigint;
}
/** The number of a document. */
export interface DocumentNumber extends Answer {
  key: string;
  /** The number in the series' format. */
  text: string;
  /** The period, where numbers begin again, and the values of the format. */
  scope: string[];
  /** The number in its scope. */
  number: bigint;
  /** Servers may have others later. */
  state: "open" | "confirmed" | "voided" | "released" | "unknown" | (string & {});
  /** It is open, and its time has ended. */
  overdue: boolean;
  /** The document's, as "2026-12-31". */
  date: string;
  /** When the key got it, by the leader's clock; undefined if it has no key. */
  taken?: Date;
  /** When its time ends; undefined means never. */
  expires?: Date;
  label: string;
  /** That of a voided number. */
  reason: string;
  /** That of the range which an authority allotted. */
  note: string;
}
export interface TakeOptions extends CallOptions {
  /** Those of the format, as { branch: "BERLIN" }. */
  values?: Record<string, string>;
  /** The document's, as "2026-12-31"; by default the present day in the series' zone. */
  date?: string;
  /** Stored with each new number, at most 64 bytes. */
  label?: string;
  /** Replaces the definition's, in milliseconds, if it is not 0. */
  expiresIn?: number;
  /**
   * What the document of the only key has already, from another tool or by hand, if it is not 0. It becomes confirmed;
   * numbers that it passes over are voided.
   */
  number?: number | bigint;
  /** Why a number is entered, or those that it passes over are voided, in 1 to 128 bytes. */
  because?: string;
}
/**
 * Gives documents numbers without a hole: a number belongs to a document's key, and asking again gives the same one.
 * Store the document without a number, take a number for the document's own id, store the number, and confirm it. Every
 * call may be made again: it has no request id, and one that failed without being refused may have happened.
 */
export interface Series {
  /** Gives each of 1 to 1,000 keys a number, or none. A key that has one keeps it, also a voided one: look at its state. */
  take(keys: string[], options?: TakeOptions): Promise<DocumentNumber[]>;
  /** Makes the numbers of documents final, or none. A key alone means whatever number it has. */
  confirm(numbers: (string | Numbered)[], options?: CallOptions): Promise<DocumentNumber[]>;
  /** Says that open numbers belong to no document, and why, in 1 to 128 bytes. */
  void(numbers: (string | Numbered)[], reason: string, options?: CallOptions): Promise<DocumentNumber[]>;
  /** Gives open numbers back: another key may get them, or they are voided, as the series' policy says. */
  release(numbers: (string | Numbered)[], options?: CallOptions): Promise<DocumentNumber[]>;
  /** The number of a key; a NotFoundError if it has none. */
  find(key: string, options?: ReadOptions): Promise<DocumentNumber>;
}

/** Gives the ids of one collection, without a call for most of them. Made by Client.hilo. Its callers share the calls for ranges. */
export interface HiLo extends AsyncDisposable {
  /** Takes a number. */
  next(options?: BoundedOptions): Promise<HiLoNumber>;
  /** Takes a number and returns its id. */
  nextId(options?: BoundedOptions): Promise<string>;
  /** Takes n numbers and returns their ids. They need not be consecutive. */
  nextIds(n: number, options?: BoundedOptions): Promise<string[]>;
  /** Whether the handle is closed: Client.hilo makes another one then. */
  readonly closed: boolean;
  /** Returns the unused numbers to the cluster. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The parts of a Snowflake id. */
export interface SnowflakeParts {
  /** When the unit of its time begins. */
  time: Date;
  worker: number;
  /** Its number within the unit. */
  sequence: number;
}
/**
 * Makes the 64-bit ids of a pool, most of them without a call: the cluster leases a worker with a window of time. Made by
 * Client.snowflake. Ids of one lease rise; their times are at most 100 ms ahead of the clock. Its callers share the calls for leases.
 */
export interface Snowflake extends AsyncDisposable {
  /**
   * Makes an id. It waits for a lease, for the begin of its window up to the client's timeout (else an IdnodeError with reason
   * "WINDOW_EARLY", and retryAfter), and where the ids of the times up to now are used up. After an error the next call tries again.
   */
  nextId(options?: BoundedOptions): Promise<bigint>;
  /** Makes n ids, 1 to 10,000, which rise. */
  nextIds(n: number, options?: BoundedOptions): Promise<bigint[]>;
  /** The parts of an id of this pool. It asks for the pool's layout if no id was made yet. */
  parse(id: bigint | number, options?: BoundedOptions): Promise<SnowflakeParts>;
  /** Whether the handle is closed: Client.snowflake makes another one then. */
  readonly closed: boolean;
  /** Frees the worker. An error means that it is free only when its window ends. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The HiLo tag for documents of a class with this name: "companies" for "Company", "OrderLines" for "OrderLine". */
export function tagOf(name: string): string;
