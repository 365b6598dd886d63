/// One statement, migration or report: its name, and its text.
package struct SQLFile: Sendable, Hashable {
    /// The name of the section, or of the file without `.sql`; prepared statements carry it.
    package let name: String
    /// The whole text, comments included.
    package let text: String

    init(_ name: String, _ text: String) {
        (self.name, self.text) = (name, text)
    }

    /// Its purpose: the first line without the comment mark.
    package var purpose: String {
        let line = text.prefix { $0 != "\n" }
        return String(line.drop { $0 == "-" || $0 == " " })
    }
}
