extension Sequence<String> {
    /// Returns the name most likely meant by `name`; nil when no name is near, or `name` is longer than 255 UTF-8
    /// bytes.
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
