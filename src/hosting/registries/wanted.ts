/** Source and hash of a file that a registry gives. */
export interface Dist {
  /** Absolute URL at the registry. */
  readonly url: string
  /** Hash in the form of `integrityText`; null if the registry's records have none. */
  readonly integrity: string | null
}

/** A package's files by name. */
export type Dists = Readonly<Record<string, Dist>>

/** A registry's document in the form in which it is cached. */
export interface ParsedDocument {
  readonly text: string
  /** The files that it lists. */
  readonly dists: Dists
}

/** A document as a registry has sent it. */
export interface RawDocument {
  readonly body: Uint8Array
  readonly type: string
  /** Where it came from. */
  readonly url: string
}

/** How a document is requested and cached. */
export interface DocumentSource {
  /** Its name in the cache, unique for the registry. */
  readonly key: string
  /** Path below the registry's address, escaped, with a leading slash. */
  readonly path: string
  readonly accept: string
  /** The package whose files it lists; null if it lists none. */
  readonly package: string | null
  /** Another form of it, which is used if the registry is out of reach. */
  readonly other?: string
  /** Parses it. @throws PackageError */
  read(document: RawDocument): ParsedDocument
}

/** What the presentation of a document depends on. */
export interface Client {
  readonly userAgent: string | null
  readonly accept: string
  /** URL at which the client reaches the registry in the relay, without a trailing slash. */
  readonly base: string
}

/** A document as a client gets it. */
export interface Presented {
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly type: string
}

/** What a client asks a registry for. */
export type Wanted =
  /** What the relay knows by itself. */
  | { readonly kind: 'answer'; present(client: Client): Presented }
  | {
      readonly kind: 'document'
      readonly source: DocumentSource
      /** @throws PackageError */
      present(text: string, client: Client): Presented
    }
  | {
      readonly kind: 'file'
      readonly package: string
      readonly file: string
      /** Keys of the documents that have its hash. */
      readonly documents: readonly string[]
      /** Returns its source and hash. @throws PackageError */
      find(): Promise<Dist>
    }

/** The protocol of one kind of package manager. */
export interface Protocol {
  /** Whether the lack of what was asked for is worth a line in the log; some package managers try many names. */
  readonly reportsMissing: boolean
  /**
   * Returns what a client asks for; null for a path that the registry does not have, or that the relay does not give.
   *
   * @param path as in a URL, still escaped, below the registry's own, with its leading slash
   */
  parse(path: string, client: Client): Wanted | null
}

/** Reports whether a path consists of plain elements: nothing that leads elsewhere. */
export const isPlainPath = (path: string): boolean =>
  /^[\w.+~!@-]+(?:\/[\w.+~!@-]+)*$/.test(path) && !path.split('/').some((part) => /^\.+$/.test(part))
