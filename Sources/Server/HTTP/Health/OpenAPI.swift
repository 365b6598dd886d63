import Hummingbird

extension Route {
    /// `GET /openapi.yaml`: the description of this API, for people and generators.
    static let openAPI = Route(.get, "/openapi.yaml") { _, _ in
        Response(
            status: .ok, headers: [.contentType: "application/yaml", .cacheControl: "public, max-age=3600"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: PackageResources.openapi_yaml)))
    }
}
