/** A status of HTTP in its colour: what went well, what the client got wrong, what the server failed at. */
export const HttpStatus = ({ of: status }: { of: number | null }) => (
  <span
    class={`http-status ${status === null || status >= 500 ? 'failed' : status >= 400 ? 'refused' : 'fine'}`}
  >
    {status ?? 'no response'}
  </span>
)
