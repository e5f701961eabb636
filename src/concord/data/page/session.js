// Who is asking, as the server told when the page was opened.

export const session = { roots: [], editor: "" };

/** Return the address that opens a line of a file in the reader's editor; null if there is none. */
export function editorAddress(file, line) {
  if (!file || !session.editor) return null;
  const path = file.split("/").map(encodeURIComponent).join("/");
  return session.editor.replace("{file}", path).replace("{line}", String(line ?? 1));
}
