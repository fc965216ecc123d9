import { randomUUID } from 'node:crypto'
import type * as client from '@modelcontextprotocol/client'
import { CALLBACK } from './oauth.ts'

/** An MCP host's memory between the steps of the flow, as the official clients of version 2 ask it. */
export class McpHost implements client.OAuthClientProvider {
  readonly redirectUrl = CALLBACK
  readonly clientMetadata = {
    client_name: 'An MCP host',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  readonly #state = randomUUID()
  #client: client.OAuthClientInformationMixed | undefined
  #tokens: client.OAuthTokens | undefined
  #discovered: client.OAuthDiscoveryState | undefined
  #verifier = ''
  /** Where it would have opened a browser. */
  opened: URL | undefined
  /** What a client had it forget. */
  readonly forgotten: string[] = []

  state = () => this.#state
  clientInformation = () => this.#client
  saveClientInformation(client: client.OAuthClientInformationMixed) {
    this.#client = client
  }
  tokens = () => this.#tokens
  saveTokens(tokens: client.OAuthTokens) {
    this.#tokens = tokens
  }
  redirectToAuthorization(url: URL) {
    this.opened = url
  }
  codeVerifier = () => this.#verifier
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier
  }
  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery') {
    this.forgotten.push(scope)
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
    if (scope === 'all' || scope === 'verifier') this.#verifier = ''
    if (scope === 'all' || scope === 'discovery') this.#discovered = undefined
  }
  discoveryState = () => this.#discovered
  saveDiscoveryState(discovered: client.OAuthDiscoveryState) {
    this.#discovered = discovered
  }
}
