/** Headers of a request or a response, in a folded table. */
export function Headers({ title, headers }: { title: string; headers: Readonly<Record<string, string>> }) {
  const fields = Object.entries(headers)
  if (fields.length === 0) return null
  return (
    <details class="headers">
      <summary>
        {title} <span class="count">{fields.length}</span>
      </summary>
      <table>
        <tbody>
          {fields.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <bdi>{value}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}
