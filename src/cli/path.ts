/** A path of the API with ids put in safely: ``path`/servers/${id}` ``. */
export const path = (parts: TemplateStringsArray, ...ids: string[]): string =>
  String.raw({ raw: parts }, ...ids.map(encodeURIComponent))
