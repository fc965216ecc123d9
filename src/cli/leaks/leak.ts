/** Something that an instance which does not run any more has left behind. */
export interface Leak {
  kind: 'process' | 'folder' | 'group' | 'entry'
  /** The pid, or the path. */
  id: string
  /** What it is, in words. */
  detail: string
  /** What a person can do about it. */
  remedy: string
  /** Ports that it listens on. */
  ports?: number[]
}
