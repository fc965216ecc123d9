/** A registry that a relay gives access to. */
export interface Mount {
  /** Its name in paths of the relay. */
  readonly name: string
  /** Whose protocol it speaks. */
  readonly protocol: 'npm' | 'pypi' | 'go' | 'crates' | 'maven' | 'rubygems'
  /** URL, without a trailing slash. */
  readonly address: string
  /** Of which setting the address is, for a person. */
  readonly setting: string
}
