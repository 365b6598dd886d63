import Foundation

/// How an operator runs a command of this program here.
package enum OperatorCommand {
    /// The variable with the words that a wrapper or a container needs in place of `perennial`.
    package static let variable = "PERENNIAL_COMMAND"
    fileprivate static let words = ProcessInfo.processInfo.environment[variable] ?? ""
}

extension String {
    /// The text with its commands of `perennial` as they are run here.
    package var runnableHere: String {
        guard !OperatorCommand.words.isEmpty else { return self }
        return ["`", "<code>"].reduce(self) {
            $0.replacing("\($1)perennial ", with: "\($1)\(OperatorCommand.words) ")
        }
    }

    /// The text with everything that a terminal would obey made visible, as `\u{1b}`: control characters, line ends,
    /// and marks that change the writing direction. Foreign text can forge no line and move no cursor.
    package var visible: String {
        guard unicodeScalars.contains(where: \.isObeyed) else { return self }
        return unicodeScalars.map { $0.isObeyed ? "\\u{\(String($0.value, radix: 16))}" : String($0) }.joined()
    }

    /// The same for several lines: line ends and tabs stay.
    package var visibleLines: String {
        guard unicodeScalars.contains(where: { $0.isObeyed && !$0.isLayout }) else { return self }
        return unicodeScalars.map { $0.isObeyed && !$0.isLayout ? String($0).visible : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    /// Whether a terminal obeys it instead of showing it: controls of ECMA-48, and the marks of Unicode's annex 9.
    fileprivate var isObeyed: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
        default: false
        }
    }

    fileprivate var isLayout: Bool { self == "\n" || self == "\t" }
}

extension BinaryInteger {
    /// Returns the number with its noun: `1 line`, `2 lines`.
    package func of(_ one: String, _ many: String) -> String { "\(self) \(self == 1 ? one : many)" }
}

extension Sequence<String> {
    /// Returns the name most likely meant; nil when no name is near, or `name` has more than 255 UTF-8 bytes.
    package func nearest(to name: String) -> String? {
        guard name.utf8.count <= 255 else { return nil }
        let distances = map { (name: $0, distance: $0.editDistance(to: name)) }
        guard let best = distances.min(by: { $0.distance < $1.distance }), best.distance <= Swift.max(2, name.count / 3)
        else { return nil }
        return best.name
    }
}

extension String {
    /// Returns the number of insertions, deletions and replacements that turn this text into the other.
    package func editDistance(to other: String) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (line, character) in enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for column in other.indices {
                let replaced = diagonal + (other[column] == character ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = Swift.min(replaced, diagonal + 1, row[column] + 1)
            }
        }
        return row[other.count]
    }
}
