/** Names of fields and parameters whose values are secret wherever they stand, in letters and digits alone. */
const SECRETS = [
  'accesskey',
  'accesstoken',
  'admintoken',
  'apikey',
  'apitoken',
  'authorization',
  'clientsecret',
  'credential',
  'credentials',
  'key',
  'passphrase',
  'passwd',
  'password',
  'privatekey',
  'refreshtoken',
  'secret',
  'secretkey',
  'sig',
  'signature',
  'token',
]

/** Names of fields of a request in which variables stand. */
const VARIABLES = ['env', 'environment', 'envs', 'secrets', 'variables', 'vars']

/** A name without what the conventions differ in. */
const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** Whether a field of this name holds a secret: `apiKey`, `api_key` and `API-KEY` alike. */
export const isSecretName = (name: string): boolean => SECRETS.includes(plain(name))

/** Whether a field of this name holds variables, whose values are secret. */
export const isVariables = (name: string): boolean => VARIABLES.includes(plain(name))

/** What stands before a value in a text of any kind: `password=`, `"apiKey": `, `{apiKey: `. */
const ASSIGNED = /\b([\w-]{2,24})["'\\]{0,4}\s{0,8}[:=]/g

/** The same in the beginning of JSON, where a quote within a text has a backslash before it. */
const FIELD = /(?<!\\)"([\w-]{2,24})"\s{0,8}:/g

/** Names of fields in a text that cannot be read as JSON, of which `isBeginning` says whether it is because it was cut. */
export const namesIn = (text: string, isBeginning: boolean): string[] =>
  Array.from(text.matchAll(isBeginning ? FIELD : ASSIGNED), ([, name = '']) => name)
