import Server
import Tracking

/// How a table is shown on a terminal: in its width, with headings that stand out.
struct TerminalStyle: Sendable, Hashable {
    /// Characters a line has room for.
    let width: Int
    /// Whether headings are bold.
    let hasColour: Bool

    /// Bold text (ECMA-48), where colours are wanted.
    func heading(_ text: String) -> String {
        hasColour && !text.isEmpty ? "\u{1B}[1m\(text)\u{1B}[0m" : text
    }
}

extension Listing {
    /// The least characters that a shortened column keeps.
    private static let cellMin = 8
    /// What stands between two columns.
    private static let gap = "  "

    /// The listing for a terminal: one row vertically, more rows as a table whose longest cells are shortened in their
    /// middle, and each row vertically where even that is too wide.
    func table(in style: TerminalStyle) -> String {
        guard rows.count > 1 else { return rows.isEmpty ? table : block(of: rows[0], style) }
        guard let widths = fitted(to: style.width) else {
            return rows.map { block(of: $0, style) }.joined(separator: "\n\n")
        }
        return lines(widths).enumerated().map { $0 == 0 ? style.heading($1) : $1 }.joined(separator: "\n")
    }

    /// The width of each column so that a line fits; nil where columns would become unreadable.
    func fitted(to width: Int) -> [Int]? {
        var widths = naturalWidths
        let mins = columns.indices.map { column in
            isNumeric(column) ? widths[column] : min(widths[column], max(columns[column].count, Self.cellMin))
        }
        var excess = widths.reduce(0, +) + Self.gap.count * max(0, columns.count - 1) - width
        while excess > 0 {
            let shrinkable = widths.indices.filter { widths[$0] > mins[$0] }
            guard let widest = shrinkable.max(by: { widths[$0] < widths[$1] }) else { return nil }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }

    private func block(of row: [JSONValue], _ style: TerminalStyle) -> String {
        let width = columns.reduce(0) { max($0, $1.count) }
        return zip(columns, row).map { column, value in
            let name = column.uppercased()
            return style.heading(name) + String(repeating: " ", count: width - name.count) + Self.gap
                + Self.text(value).visible
        }.joined(separator: "\n")
    }
}

extension String {
    /// The text in at most this many characters: both ends of a longer one, since ids differ at their ends.
    func shortened(to width: Int) -> String {
        guard count > width else { return self }
        guard width > 1 else { return String(prefix(width)) }
        return prefix((width - 1) / 2) + "…" + suffix(width - 1 - (width - 1) / 2)
    }
}
