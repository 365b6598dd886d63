import Hummingbird

extension Response {
    /// A JSON answer.
    init(_ value: JSONValue, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        var fields: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]
        for field in headers { fields[field.name] = field.value }
        self.init(
            status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: JSONText(value).bytes)))
    }
}
