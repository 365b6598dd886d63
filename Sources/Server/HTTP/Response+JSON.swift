import Hummingbird

extension Response {
    /// Creates a JSON response.
    init(_ value: JSONValue, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        self.init(JSONText(value), status: status, headers: headers)
    }

    /// Creates a JSON response from text that is already written.
    init(_ text: JSONText, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) {
        var fields: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]
        for field in headers { fields[field.name] = field.value }
        self.init(
            status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: text.bytes)))
    }
}
