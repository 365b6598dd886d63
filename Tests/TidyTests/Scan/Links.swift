/// The targets of a Markdown text's links that should be files: no addresses, no anchors, nothing inside code.
func linkedPaths(in markdown: String) -> [String] {
    var isInsideFence = false
    var paths: [String] = []
    for line in markdown.split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix("```") {
            isInsideFence.toggle()
            continue
        }
        if isInsideFence || line.hasPrefix("    ") { continue }
        let prose = line.replacing(#/`[^`]*`/#, with: "code")
        for match in prose.matches(of: #/\]\(([^)\s]+)[^)]*\)/#) {
            let path = match.1.prefix { $0 != "#" }
            if !path.isEmpty, !path.contains(":") { paths.append(String(path)) }
        }
    }
    return paths
}

/// A path relative to the folder of `document`, with `.` and `..` resolved; nil when it leaves the root.
func resolvedPath(_ path: String, from document: String) -> String? {
    var parts = document.split(separator: "/").dropLast().map(String.init)
    for part in path.split(separator: "/") {
        switch part {
        case ".": continue
        case "..":
            guard !parts.isEmpty else { return nil }
            parts.removeLast()
        default: parts.append(String(part))
        }
    }
    return parts.joined(separator: "/")
}
