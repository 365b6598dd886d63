import Hummingbird

/// A file for the pages, embedded in the program.
struct AdminFile: Sendable {
    let path: String
    let type: String
    let bytes: [UInt8]

    static let style = AdminFile(
        path: "/admin/style.css", type: "text/css; charset=utf-8", bytes: PackageResources.style_css)
    static let icon = AdminFile(path: "/admin/icon.svg", type: "image/svg+xml", bytes: PackageResources.icon_svg)

    /// The route of the file, which a browser may cache for five minutes.
    var route: Route {
        Route(.get, path) { _, _ in
            Response(
                status: .ok, headers: [.contentType: type, .cacheControl: "public, max-age=300"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
            ).asAdminPage
        }
    }
}
