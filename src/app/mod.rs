//! Assembly: builds every part and wires them together. The only room that knows all the others.
