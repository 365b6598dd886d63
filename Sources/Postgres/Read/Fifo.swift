/// First in, first out, without moving what stays.
struct Fifo<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }
    var first: Element? { isEmpty ? nil : elements[head] }
    /// What is inside, oldest first.
    var all: [Element] { elements[head...].compactMap { $0 } }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func removeFirst() {
        guard !isEmpty else { return }
        elements[head] = nil
        head += 1
        if head == elements.count || (head >= 1_024 && head * 2 > elements.count) {
            elements.removeFirst(head)
            head = 0
        }
    }
}
