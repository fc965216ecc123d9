/** Why a source gives no code, as a sentence for whoever named it. It holds no credential. Nothing was changed. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
}

/** A name of an archive or a repository as it stands in a message: on one line and not too long. */
export const quoted = (name: string): string =>
  JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)
