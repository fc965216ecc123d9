/** Who a request comes from: the account behind its credential, and the key that it used. */
export interface Caller {
  readonly accountId: string
  readonly keyId: string
}
