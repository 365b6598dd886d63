import Testing

/// What a screen reader and a keyboard need of every page.
func expectAccessible(_ page: String, _ name: String) {
    #expect(page.hasPrefix("<!doctype html>\n<html lang=\"en\">"), "\(name)")
    #expect(page.contains("<meta name=\"viewport\""), "\(name)")
    #expect(page.matches(of: #/<h1>/#).count == 1 && page.matches(of: #/<main /#).count == 1, "\(name)")
    #expect(page.contains("<a class=\"skip\" href=\"#content\">"), "\(name)")
    #expect(page.matches(of: #/<table[ >]/#).count == page.matches(of: #/<caption>/#).count, "\(name)")
    #expect(page.matches(of: #/<th>/#).isEmpty && page.matches(of: #/<th scope=/#).count >= 0, "\(name)")
    let images = page.matches(of: #/<svg [^>]*role="img" aria-labelledby="/#).count
    #expect(page.matches(of: #/<svg/#).count == images, "\(name)")
    for match in page.matches(of: #/<(?:input|select|textarea) id="(?<id>[^"]+)"/#) {
        #expect(page.contains("<label for=\"\(match.output.id)\""), "\(name): \(match.output.id)")
    }
    let ids = page.matches(of: #/ id="(?<id>[^"]+)"/#).map(\.output.id)
    #expect(Set(ids).count == ids.count, "\(name) has an id twice")
}
