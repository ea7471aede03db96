// Loops and internal functions for the scalar lowering.
#include "backend/ptx/scalar_expr.h"

namespace tile {

Values repeat(llvm::IRBuilder<>& b, Values start, const std::function<Value*(const Values&)>& condition,
              const std::function<Values(const Values&)>& step) {
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* f = before->getParent();
  auto* head = llvm::BasicBlock::Create(b.getContext(), "", f);
  auto* body = llvm::BasicBlock::Create(b.getContext(), "", f);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  std::vector<llvm::PHINode*> phis;
  Values values;
  for (Value* v : start) {
    phis.push_back(b.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
    values.push_back(phis.back());
  }
  b.CreateCondBr(condition(values), body, after);
  b.SetInsertPoint(body);
  const Values next = step(values);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return values;
}

Expr call_shared(llvm::Module& module, const std::string& name, llvm::Type* result,
                 std::initializer_list<Expr> arguments, const Body& body) {
  std::vector<Value*> values;
  std::vector<llvm::Type*> types;
  for (const Expr& x : arguments) {
    values.push_back(x);
    types.push_back(x.type());
  }
  llvm::Function* f = module.getFunction(name);
  if (f == nullptr) {
    f = llvm::Function::Create(llvm::FunctionType::get(result, types, false), llvm::GlobalValue::InternalLinkage, name,
                               module);
    f->addFnAttr(llvm::Attribute::NoInline);
    f->addFnAttr(llvm::Attribute::NoUnwind);
    f->addFnAttr(llvm::Attribute::WillReturn);
    f->setDoesNotAccessMemory();
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", f));
    std::vector<Expr> parameters;
    for (llvm::Argument& a : f->args()) parameters.push_back({&b, &a});
    b.CreateRet(body(parameters));
  }
  llvm::IRBuilder<>* b = arguments.begin()->b;
  return {b, b->CreateCall(f, values)};
}

}  // namespace tile
