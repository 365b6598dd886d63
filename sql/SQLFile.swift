/// One SQL file: its name without the extension, and its text.
package struct SQLFile: Sendable, Hashable {
    /// The file's name without `.sql`; prepared statements carry it.
    package let name: String
    /// The whole text, comments included.
    package let text: String

    init(_ name: String, _ text: String) {
        (self.name, self.text) = (name, text)
    }

    /// The purpose of the file: its first line without the comment mark.
    package var purpose: String {
        let line = text.prefix { $0 != "\n" }
        return String(line.drop { $0 == "-" || $0 == " " })
    }
}
